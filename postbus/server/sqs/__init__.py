"""The SQS wire: boto3 and every other SDK of AWS use queues of Postbus by the protocols of Amazon SQS, version 2012-11-05.

wire.py answers a request: one of the protocols reads it (protocol_json.py, protocol_query.py), signatures.py says who sent it,
table.py which operation it is. shapes.py has what goes in and out, once for both protocols. The handlers lie in queues.py,
sending.py, receiving.py, settling.py and moving.py.
"""
