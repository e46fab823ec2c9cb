"""The one stylesheet of every page: the documentation's look, light, dark and on paper.

Colours are variables, so that charts and text change together; every text and every tone of a chart has a
contrast of at least 4.5 to what it stands on (tests/report/test_html.py computes them).
"""

# name: (light and paper, dark)
COLOURS = {
    "paper": ("#ffffff", "#131416"),
    "raised": ("#f5f7f6", "#1d2022"),
    "line": ("#d5dad7", "#3a4043"),
    "ink": ("#1b1f1d", "#dfe3e1"),
    "quiet": ("#55605a", "#a9b3ae"),
    "brand": ("#1f6b4a", "#7fd1a8"),
    "warn": ("#9c2a1f", "#ff9d92"),
    "tone-0": ("#5c636b", "#b4bbc4"),  # the original, and what others are compared with
    "tone-1": ("#1f6b4a", "#7fd1a8"),  # the copies
    "tone-2": ("#a04a00", "#ffb066"),  # what stands out
    "tone-3": ("#0b5a9e", "#86bfff"),
    "tone-4": ("#7a3a94", "#d5a8f4"),
}
TONES = 5


def write_style(mark: str = "") -> str:
    """The stylesheet; on paper `mark`, a word of our own, stands at the head of every sheet."""
    light, dark = (";".join(f"--{name}:{pair[which]}" for name, pair in COLOURS.items()) for which in (0, 1))
    tones = "".join(f".t{tone}{{color:var(--tone-{tone})}}" for tone in range(TONES))
    return _STYLE.replace("LIGHT", light).replace("DARK", dark).replace("TONES", tones).replace("MARK", mark)


_STYLE = """
:root{color-scheme:light dark;LIGHT}
@media screen and (prefers-color-scheme:dark){:root{DARK}}
*{box-sizing:border-box}
html{font-size:16px;-webkit-text-size-adjust:100%;text-size-adjust:100%;scroll-behavior:smooth}
body{margin:0;background:var(--paper);color:var(--ink);overflow-wrap:anywhere;
 font:1rem/1.55 -apple-system,BlinkMacSystemFont,"Segoe UI","DejaVu Sans",Helvetica,Arial,sans-serif}
.mark{background:var(--warn);color:var(--paper);font-weight:700;letter-spacing:.06em;text-align:center;
 padding:.4rem 1rem;margin:0;max-width:none}
.wrap{max-width:64rem;margin:0 auto;padding:0 1.25rem 4rem}
h1{font-size:1.9rem;line-height:1.2;margin:1.8rem 0 .4rem}
h2{font-size:1.4rem;line-height:1.25;margin:3rem 0 .6rem;padding-top:.8rem;border-top:2px solid var(--brand)}
h3{font-size:1.08rem;margin:1.8rem 0 .4rem}
p,ul,ol,dl{margin:.6rem 0}
p,li{max-width:46rem}
a{color:var(--brand)}
a:focus-visible,summary:focus-visible,[tabindex]:focus-visible{
 outline:3px solid var(--brand);outline-offset:2px}
code,pre{font-family:"SFMono-Regular",Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.85em}
code,bdi.name{background:var(--raised);border-radius:.2rem;padding:.05em .15em}
pre{background:var(--raised);border-radius:.35rem;padding:.8rem 1rem;overflow-x:auto;max-width:100%}
pre code{padding:0;background:none}
.lead{font-size:1.12rem}
.quiet,.reading{color:var(--quiet)}
.reading{font-size:.9rem;margin:.35rem 0}
.warn{border-left:4px solid var(--warn);padding:.4rem .9rem;background:var(--raised);max-width:46rem}
.warn strong,.bad{color:var(--warn)}
nav ol{columns:18rem 2;padding-left:1.4rem;font-size:.95rem}
nav li{margin:.1rem 0}
.tiles{display:grid;
 grid-template-columns:repeat(auto-fit,minmax(min(100%,16rem),1fr));gap:1rem;margin:1.2rem 0}
.tile{background:var(--raised);border-radius:.5rem;padding:.9rem 1.1rem;border-top:4px solid var(--brand)}
.tile b{display:block;font-size:2rem;line-height:1.15;font-variant-numeric:tabular-nums}
.tile .label{font-weight:600;margin:.1rem 0}
.tile .reading{margin:.3rem 0 0}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,27rem),1fr));gap:1.6rem 2rem;
 align-items:start;margin:1rem 0}
figure{margin:0;min-width:0}
figcaption{font-weight:600;margin-bottom:.3rem}
svg{display:block;width:100%;max-width:34rem;height:auto;
 font:13px/1 -apple-system,BlinkMacSystemFont,"Segoe UI","DejaVu Sans",Helvetica,Arial,sans-serif}
svg text{fill:var(--ink);unicode-bidi:isolate;
 paint-order:stroke;stroke:var(--paper);stroke-width:3px;stroke-linejoin:round}
svg .axis{stroke:var(--quiet);stroke-width:1;fill:none}
svg .grid{stroke:var(--line);stroke-width:1;fill:none}
svg .tick{fill:var(--quiet);font-size:12px}
svg .mid{text-anchor:middle}svg .end{text-anchor:end}svg .strong{font-weight:600}
TONES
svg .line{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round}
svg .dashed{stroke-dasharray:6 4}
svg .rule{fill:none;stroke:currentColor;stroke-width:1.5;stroke-dasharray:2 3}
svg .band{fill:currentColor;fill-opacity:.32;stroke:none}
svg .area{fill:currentColor;fill-opacity:.28;stroke:currentColor;stroke-width:1}
svg .bar,svg .dot{fill:currentColor;stroke:none}
svg .hollow{fill:var(--paper);stroke:currentColor;stroke-width:1.8}
svg .said{fill:currentColor;font-size:12px}svg .inside{fill:var(--paper);font-size:12px;stroke:none}
details{margin:.4rem 0}
summary{cursor:pointer;color:var(--brand);font-size:.9rem;width:fit-content}
.scroll{overflow-x:auto;max-width:100%;margin:.5rem 0}
table{border-collapse:collapse;font-size:.88rem;overflow-wrap:break-word;font-variant-numeric:tabular-nums}
caption{text-align:left;font-weight:600;padding:.2rem 0 .4rem}
th,td{padding:.28rem .9rem .28rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line);
 min-width:3.2rem;max-width:30rem}
thead th{border-bottom:2px solid var(--line);vertical-align:bottom}
th[scope=row]{font-weight:500}
.n{text-align:right}.n,.s{white-space:nowrap}
thead .n{white-space:normal}
dl.facts{display:grid;grid-template-columns:minmax(8rem,max-content) 1fr;gap:.25rem 1.2rem;max-width:56rem}
dl.facts dt{color:var(--quiet)}dl.facts dd{margin:0}
p.mark{max-width:none}
.stamp{font-size:clamp(1.8rem,11.3vw,6.5rem);line-height:1;font-weight:800;letter-spacing:.06em;max-width:none;
 white-space:nowrap;
 text-transform:uppercase;color:var(--warn);border:.09em solid;border-radius:.12em;padding:.14em .2em;
 width:fit-content;margin:1.2rem 0}
th,td{overflow-wrap:break-word}td code{overflow-wrap:anywhere}
td:has(>code){min-width:11rem}td:has(>code:only-child){max-width:none}
.sign td,.sign th{height:2.2rem;vertical-align:bottom}
.sign table{width:100%;min-width:24rem;table-layout:fixed}
.fill{min-height:3.4rem;border-bottom:1px solid var(--line);max-width:none}
footer{margin-top:3rem;border-top:1px solid var(--line);padding-top:.8rem;color:var(--quiet);font-size:.85rem}
@media screen and (min-width:60rem){.figures .tall{grid-row:span 3}}
@media (max-width:30rem){
 h1{font-size:1.55rem}h2{font-size:1.25rem}.wrap{padding:0 1rem 3rem}
 dl.facts{grid-template-columns:1fr;gap:0}dl.facts dd{margin:0 0 .5rem}
}
@page{size:A4;margin:18mm 16mm 18mm;
 @top-left{content:"MARK";font:700 9pt sans-serif;color:#9c2a1f}
 @bottom-right{content:counter(page) " / " counter(pages);font:9pt sans-serif;color:#55605a}}
@media print{
 .stamp{font-size:52pt}td{overflow-wrap:anywhere}
 .board{font-size:8.3pt;line-height:1.27}
 h1:has(+.board){font-size:1.3rem;margin:.6rem 0 .2rem}
 .board h2{font-size:1.15rem;margin:.7rem 0 .2rem;padding-top:.3rem}
 .board h3{font-size:1rem;margin:.4rem 0 .1rem}
 .board p,.board ul,.board dl,.board .scroll{margin:.25rem 0;max-width:none}
 .board dl.facts{max-width:none;gap:.1rem 1rem}
 .board table{font-size:1em;width:100%}.board th,.board td{padding:.12rem .6rem .12rem 0;max-width:none}
 .board .rests table{table-layout:fixed}.rests th:nth-child(2){width:30%}.rests th:nth-child(3){width:13%}
 .board .sign td,.board .sign th{height:1.9rem}.board .fill{min-height:2.6rem}
 .board .reading{font-size:1em}
 html{font-size:10pt}
 body{line-height:1.4}
 .wrap{max-width:none;padding:0}
 nav,.long,.mark{display:none}
 details::details-content{content-visibility:visible;block-size:auto}
 h2{margin-top:1.6rem}
 h2,h3,figcaption,caption,.warn{break-after:avoid}
 figure,tr,.tile,.warn,dl.facts{break-inside:avoid}
 .tiles{grid-template-columns:repeat(3,1fr)}
 .figures{grid-template-columns:1fr 1fr;gap:1.2rem 1.4rem}
 table{font-size:.85em}th,td{padding-right:.5rem;min-width:0}
 figure table{font-size:.8em}figure th,figure td{padding-right:.45rem}
 figure .s,figure thead .n{white-space:normal}figure tbody th{overflow-wrap:anywhere}figure thead .n{width:1%}
 .scroll{overflow:visible}
 thead{display:table-header-group}
 *{print-color-adjust:exact;-webkit-print-color-adjust:exact}
 a{color:inherit;text-decoration:none}
}
"""
