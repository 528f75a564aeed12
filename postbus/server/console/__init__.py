"""The web console: pages of HTML that the server renders, and that work without JavaScript."""
