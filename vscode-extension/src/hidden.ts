// Written from protocol/amanu_protocol/hidden.py by protocol/generate.py. Do not edit.

/** Characters that are not seen, or make others stand in another order. */
// prettier-ignore
export const HIDDEN = /[\u{0}-\u{8}\u{b}-\u{1f}\u{7f}-\u{9f}\u{ad}-\u{ad}\u{34f}-\u{34f}\u{61c}-\u{61c}\u{115f}-\u{1160}\u{17b4}-\u{17b5}\u{180b}-\u{180f}\u{200b}-\u{200f}\u{2028}-\u{202e}\u{2060}-\u{206f}\u{3164}-\u{3164}\u{fe00}-\u{fe0f}\u{feff}-\u{feff}\u{ffa0}-\u{ffa0}\u{fff9}-\u{fffb}\u{d800}-\u{dfff}\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;
