#!/usr/bin/env python3
"""A list with 3 % of faults: longhaul against the usual script with requests, and the least time.

The script is a session per thread, an adapter with a Retry, a ThreadPoolExecutor; it waits in its
threads. Both ask the same origin (`work_conserved origin`), each a fresh one, one after the other.

    cargo build --release --all-features --example work_conserved
    pip install requests
    python3 benches/work_conserved.py
"""

import os
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
EXAMPLE = os.path.join(ROOT, "target", "release", "examples", "work_conserved")
URLS, WORKERS = 20_000, 24

local = threading.local()


def session():
    if not hasattr(local, "session"):
        local.session = requests.Session()
        local.session.trust_env = False
        retry = Retry(total=4, connect=3, read=2, status=3, backoff_factor=0.6,
                      status_forcelist=[408, 425, 429, 500, 502, 503, 504])
        local.session.mount("http://", HTTPAdapter(max_retries=retry))
    return local.session


def fetch(url):
    response = session().get(url, timeout=(5, 1))
    return response.status_code == 200 and len(response.content) > 0


def main():
    with subprocess.Popen([EXAMPLE, "origin"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as origin:
        base = origin.stdout.readline().strip()
        began = time.monotonic()
        with ThreadPoolExecutor(WORKERS) as pool:
            good = sum(pool.map(fetch, (f"{base}{number}" for number in range(URLS))))
        took = time.monotonic() - began
        origin.stdin.close()
    print(f"requests: {good} of {URLS} pages in {took:.2f} s")
    done = subprocess.run([EXAMPLE], capture_output=True, text=True, check=True)
    print("longhaul:", done.stdout.strip())
    print("load:", os.getloadavg())


if __name__ == "__main__":
    main()
