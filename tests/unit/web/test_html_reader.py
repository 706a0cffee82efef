"""HTML as Markdown: what is seen stays, what is hidden goes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amanu.web.page_text import html_text

URL = "https://site.example/docs/"


def check(source: str, text: str) -> None:
    assert html_text(source, URL).text == text


HIDDEN_STYLES = [
    *("display:none", "visibility:hidden", "opacity:0", "font-size:0", "position:absolute;left:-9999px"),
    *("text-indent:-9999px", "DISPLAY : NONE !important", "display:/**/none", r"d\69splay:none", "visibility:collapse"),
    *("opacity:0.0", "opacity: 0%", "font-size:0px", "color:transparent", "clip:rect(0, 0, 0, 0)"),
    *("clip-path: inset(50%)", "width:0;height:0;overflow:hidden", "max-height:0; overflow:hidden"),
    *("transform:scale(0)", "content-visibility:hidden", "margin-left:-10000px", "color:red;display:none;"),
]
HIDDEN = {
    **{style: f"<p style='{style}'>unseen</p>" for style in HIDDEN_STYLES},
    **{
        tag: f"<{tag}>unseen</{tag}>"
        for tag in (
            *("script", "style", "template", "noscript", "iframe", "svg", "dialog", "canvas", "datalist"),
            *("video", "audio", "noembed", "noframes"),
        )
    },
    "the attribute": "<div hidden>unseen</div>",
    "until found": "<div hidden=until-found>unseen</div>",
    "a comment": "<!-- unseen -->",
    "a comment that begins empty": "<!----> <!-- unseen <!---->",
    "a section": "<![CDATA[unseen]]>",
    "an input": "<input type=hidden value=unseen>",
    "an alternative": "<img hidden alt=unseen>",
    "within": "<div hidden><p>unseen<table><tr><td>unseen</table><b>unseen</b></div>",
    "without its end": "<div><p hidden>unseen</div>",
    "by a stray end": "<div hidden></span></p></li></td>unseen</div>",
    "by an end outside": "<span hidden>unseen<div></span>unseen</div></span>",
    "by an end in text": "<div><noscript></div>unseen</noscript></div>",
    "templates in templates": "<template><template></template>unseen</template>",
    "a slash": "<div hidden />unseen</div>",
    "a script with a slash": "<script/>unseen</script>",
    "twice": "<p hidden hidden=''>unseen</p>",
    "the first of two counts": "<p style='display:none' style=''>unseen</p>",
    "in preformatted text": "<pre><span style='display:none'>unseen</span></pre>",
    "a row": "<table><tr hidden><td>unseen</tr></table>",
    "an item": "<ul><li hidden>unseen</ul>",
}


@pytest.mark.parametrize("source", HIDDEN.values(), ids=HIDDEN)
def test_what_is_hidden_goes(source: str) -> None:
    check(f"<p>before</p>{source}<p>after</p>", "before\n\nafter")


SEEN = {
    "a paragraph after a hidden one": ("<p hidden>unseen<p>seen", "seen"),
    "an item after a hidden one": ("<ul><li hidden>unseen<li>seen</ul>", "- seen"),
    "a page that shows itself later": ("<body style='opacity:0'>seen", "seen"),
    "a little transparent": ("<p style='opacity:0.5'>seen", "seen"),
    "a little to the left": ("<p style='left:-10px'>seen", "seen"),
    "nothing that is not cut off": ("<p style='height:0'>seen", "seen"),
    "an empty style": ("<p style>seen", "seen"),
    "an open dialog": ("<dialog open>seen", "seen"),
    "details": ("<details><summary>a</summary>b</details>", "a\n\nb"),
}
MARKDOWN = {
    "headings": ("<h1>a <b>b</b></h1><h3>c<br>d</h3>", "# a **b**\n\n### c d"),
    "paragraphs": ("one\n  two<p>three<p>four", "one two\n\nthree\n\nfour"),
    "lines": ("<p>a<br>b<br><br><br>c", "a\nb\n\nc"),
    "a rule": ("a<hr>b", "a\n\n---\n\nb"),
    "emphasis": ("<b> a </b>b<i>c</i> <del>d</del><b></b>", "**a** b*c* ~~d~~"),
    "emphasis in emphasis": ("<b>a<strong>b</strong><i>c</b>d</i>", "**ab*c***d"),
    "emphasis that a block ends": ("<b><p>a<p>b", "**a**\n\nb"),
    "code": ("<code>a <b>b</b></code> <code>c`d</code>", "`a b` `` c`d ``"),
    "preformatted": ("<pre><code class='x language-py'>\na\n  <b>b</b> &lt;\n</code></pre>", "```py\na\n  b <\n```"),
    "preformatted lines": ("<pre><div>a</div><div>b</div>c<br>d</pre>", "```\na\nb\nc\nd\n```"),
    "preformatted fences": ("<pre>```</pre>", "````\n```\n````"),
    "lists": ("<ul><li>a<ul><li>b</ul><li><p>c<p>d</ul>e", "- a\n  - b\n- c\n\n  d\n\ne"),
    "numbers": ("<ol start=9><li>a<li>b<ul><li>c</ul></ol>", "9. a\n10. b\n    - c"),
    "code in a list": ("<ul><li>a<pre>b\nc</pre></ul>", "- a\n\n  ```\n  b\n  c\n  ```"),
    "a quote": ("<blockquote><p>a<br>b</blockquote>c", "> a\n> b\n\nc"),
    "a table": (
        "<table><thead><tr><th>a<th>b</thead><tr><td>c|d<td><p>e<p>f<tr></table>g",
        "| a | b |\n| --- | --- |\n| c\\|d | e f |\n\ng",
    ),
    "a table of layout": ("<table><tr><td>a<td>b<h2>c</h2>d<tr><td>e</table>", "a\n\nb\n\n## c\n\nd\n\ne"),
    "a table in a table": ("<table><tr><td>a<table><tr><td>b</table></table>", "a\n\n| b |\n| --- |"),
    "definitions": ("<dl><dt>a<dd>b<dt>c<dd>d</dl>", "a\n\nb\n\nc\n\nd"),
    "words apart": ("<button>a</button>b<select><option>c<option>d</select>", "a b c d"),
    "a link": ("<a href='../x y'> a </a>b", "[a](https://site.example/x%20y) b"),
    "a link with brackets": ("<a href='/x(y)'>a [b](c)</a>", r"[a \[b\](c)](https://site.example/x%28y%29)"),
    "a link round blocks": ("<a href='/x'><h2>a</h2><p>b</p></a>", "## [a](https://site.example/x)\n\nb"),
    "a link in a link": ("<a href='/x'>a<a href='/y'>b", "[a](https://site.example/x)[b](https://site.example/y)"),
    "a link within the page": ("<a href='#x'>a</a>", "a"),
    "a link to nowhere": ("<a href='http://[oops'>a</a>", "a"),
    "a link to a script": ("<a href=' java\nscript:x()'>a</a>", "a"),
    "a link by a base": ("<base href='https://other.example/a/'><a href=b>c</a>", "[c](https://other.example/a/b)"),
    "an image": ("<img alt='a [b' src=/c.png><img src='data:x' alt=d>", r"![a \[b](https://site.example/c.png)d"),
    "an image in a link": (
        "<a href=/x><img alt=a src=/y></a>",
        "[![a](https://site.example/y)](https://site.example/x)",
    ),
    "text like Markdown": ("<p>* a _b_ [c", "* a _b_ [c"),
    "a number of no character": (f"a &#{'9' * 5000};b&#x1F600;", "a \ufffdb😀"),
    "tags that are none": ("a < b &amp; c", "a < b & c"),
}


@pytest.mark.parametrize(("source", "text"), [*SEEN.values(), *MARKDOWN.values()], ids=[*SEEN, *MARKDOWN])
def test_what_is_seen_stays(source: str, text: str) -> None:
    check(source, text)


def test_the_title_is_the_pages() -> None:
    page = html_text("<title> A &amp;\n b </title><svg><title>c</title></svg><title>d</title><p>e", URL)
    assert (page.title, page.text) == ("A & b", "e")


_TAGS = (
    *("div", "p", "span", "b", "a", "code", "ul", "li", "ol", "table", "tr", "td", "th", "pre", "h2", "br", "hr", "q"),
    *("button", "svg", "script", "blockquote", "dl", "dt"),
)
_PIECES = st.one_of(
    *(st.sampled_from([f"<{tag}>", f"</{tag}>", f"<{tag} hidden>", f"<{tag}/>"]) for tag in _TAGS),
    st.sampled_from(["<a href=/x>", "<img src=x>", "<!--", "-->", "<![", "<?", "&", "<", "'", "x", " \n"]),
)


@given(st.lists(_PIECES, max_size=40))
def test_any_soup_is_read(pieces: list[str]) -> None:
    html_text("".join(pieces), URL)
