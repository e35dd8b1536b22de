"""What draws and words an answer: lines for a terminal, a document, a table, a picture, a page."""
