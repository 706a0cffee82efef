/** In the conversation the arrow keys go from card to card, once one of them or the conversation itself has the focus.
 * What is longer than the view is scrolled through first. */
export function walk(list: HTMLElement, event: KeyboardEvent): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const at = event.target as HTMLElement;
  if (step === undefined || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (at !== list && at.parentElement !== list) return;
  if (at !== list && goesOn(at, list, step)) return;
  const cards = [...list.children] as HTMLElement[];
  const next = at === list ? cards.at(-1) : cards[cards.indexOf(at) + step];
  if (next === undefined) return;
  event.preventDefault();
  next.tabIndex = -1;
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

/** Whether more of the card is out of sight on that side. */
function goesOn(card: HTMLElement, list: HTMLElement, step: number): boolean {
  const [inner, outer] = [card.getBoundingClientRect(), list.getBoundingClientRect()];
  return step > 0 ? inner.bottom > outer.bottom + 1 : inner.top < outer.top - 1;
}
