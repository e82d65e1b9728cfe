"""Tells what warcio reads in WARC files: one JSON object a record, in order."""

import base64
import json
import sys

from warcio.archiveiterator import ArchiveIterator


def records(name, of):
    with open(name, "rb") as stream:
        iterator = ArchiveIterator(stream)
        for record in iterator:
            yield iterator, record, of(record).read()


for name in sys.argv[1:]:
    raw = records(name, lambda record: record.raw_stream)
    decoded = records(name, lambda record: record.content_stream())
    for (iterator, record, payload), (_, _, content) in zip(raw, decoded):
        http = record.http_headers
        print(json.dumps({
            "file": name,
            "offset": iterator.get_record_offset(),
            "type": record.rec_type,
            "fields": dict(record.rec_headers.headers),
            "line": http and " ".join(filter(None, [http.protocol, http.statusline])),
            "http": http and http.headers,
            "payload": base64.b64encode(payload).decode(),
            "content": base64.b64encode(content).decode(),
        }))
