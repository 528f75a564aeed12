"""HTML that is safe by construction, and charts as SVG: for the console and for reports."""
