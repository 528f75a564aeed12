"""report: what a stream and its consumers did over time, as one page and as tables.

pipeline.py runs it by its options.py. window.py says what is looked at; measure.py (messages) and deliveries.py (what consumers
made of them) are the aggregations of Spark, facts.py what they find, forecast.py where it leads. page.py, sections.py and
charts.py draw it, tables.py writes it down.
"""
