"""The page's files and a Gradio app → one mount beside the API's routes, which it never shadows.

What a visitor sees is ``parts`` (HTML), ``static`` (CSS, JavaScript) and ``static/text`` (words);
Gradio carries it, and gives programs an API of its own (``form``).
"""

from __future__ import annotations

import json
from pathlib import Path

import gradio as gr
from fastapi import FastAPI
from fastapi.responses import FileResponse, RedirectResponse
from starlette.staticfiles import StaticFiles

from api.service import Service
from api.ui import form, reference, status

PATH = "/ui"
_HERE = Path(__file__).parent
_PARTS = ("header", "speak", "compare", "clone", "longtext", "status", "footer")
_LANGUAGES = ("en", "de")
_UPLOAD_BYTES = 64 * 2**10  # nothing of ours is uploaded through Gradio
_STYLES = ("style", "controls", "speak", "compare", "clone", "longtext", "status")
_HEAD = "\n".join(
    (
        *(f'<link rel="stylesheet" href="./files/{name}.css">' for name in _STYLES),
        '<link rel="icon" type="image/svg+xml" href="./files/mark.svg">',
        '<script type="module" src="./files/main.js"></script>',
    )
)


def mount(app: FastAPI, service: Service) -> None:
    """Add the page under ``/ui``, the two routes it needs under ``/v1``, and a redirect from ``/``.

    Call it after the API's routes are included and before the server starts.
    """
    app.include_router(status.router(service))
    app.include_router(reference.router(service))

    @app.get("/", include_in_schema=False)
    async def home() -> RedirectResponse:
        return RedirectResponse(f"{PATH.lstrip('/')}/")

    @app.get("/favicon.ico", include_in_schema=False)
    async def icon() -> FileResponse:
        return FileResponse(_HERE / "static" / "mark.svg")

    say = gr.I18n(**{language: words(language) for language in _LANGUAGES})
    app.mount(f"{PATH}/files", StaticFiles(directory=_HERE / "static"), name="page-files")
    gr.mount_gradio_app(
        app,
        build(app, service, say),
        PATH,
        theme=_theme(),
        head=_HEAD,
        i18n=say,
        footer_links=[],
        run_history=False,
        ssr_mode=False,
        max_file_size=_UPLOAD_BYTES,
        show_error=True,
    )


def build(app: FastAPI, service: Service, say: gr.I18n) -> gr.Blocks:
    """The Gradio app: our page in one HTML component, and below it Gradio's own small form.

    Its queue lets everything through: the engine's queue is the only one.
    """
    blocks: gr.Blocks
    with gr.Blocks(title="Tontaube", analytics_enabled=False, fill_width=True) as blocks:
        gr.HTML(markup(), apply_default_css=False, js_on_load=None, elem_id="page")
        form.add(app, service, say)
    blocks.queue(default_concurrency_limit=None, max_size=None)
    return blocks


def markup() -> str:
    """The page's HTML; its words are put in by the browser (``static/text.js``)."""
    header, *panels, footer = (
        (_HERE / "parts" / f"{name}.html").read_text("utf-8") for name in _PARTS
    )
    body = "\n".join((header, '<div class="panels">', *panels, "</div>", footer))
    return f'<div id="tontaube" data-state="loading">{body}</div>'


def words(language: str) -> dict[str, str]:
    """The page's words in ``en`` or ``de``, by key."""
    path = _HERE / "static" / "text" / f"{language}.json"
    table: dict[str, str] = json.loads(path.read_text("utf-8"))
    return table


def _theme() -> gr.themes.Base:
    """System fonts, so that nothing is fetched from elsewhere; colours are in ``style.css``."""
    return gr.themes.Base(
        primary_hue="orange",
        neutral_hue="stone",
        font=["system-ui", "sans-serif"],
        font_mono=["ui-monospace", "monospace"],
    )
