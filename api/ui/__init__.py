"""The browser page: a Gradio app whose parts are our own HTML and JavaScript over the API."""
