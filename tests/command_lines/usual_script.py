"""Fetches the pages of urls.txt through a proxy, and writes a line for each into results.csv."""
import csv
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

WORKERS = 24
TIMEOUT = (5, 25)
PROXY = "http://anna:secret@10.0.0.1:8000"
RETRY = Retry(
    total=4,
    connect=3,
    read=2,
    status=3,
    status_forcelist=[408, 425, 429, 500, 502, 503, 504],
    allowed_methods=["GET", "HEAD", "OPTIONS"],
    backoff_factor=0.6,
    raise_on_status=False,
)
local = threading.local()


def session():
    """One per thread: requests does not promise that threads may share one."""
    if not hasattr(local, "session"):
        local.session = requests.Session()
        adapter = HTTPAdapter(max_retries=RETRY, pool_connections=10, pool_maxsize=10)
        local.session.mount("http://", adapter)
        local.session.mount("https://", adapter)
        local.session.proxies = {"http": PROXY, "https": PROXY}
        local.session.headers["User-Agent"] = "price-watch/1.0"
    return local.session


def fetch(url):
    response = session().get(url, timeout=TIMEOUT)
    response.raise_for_status()
    return response.status_code, len(response.content)


def fetch_all(urls, out):
    failed = {}
    with ThreadPoolExecutor(WORKERS) as executor:
        futures = {executor.submit(fetch, url): url for url in urls}
        for future in as_completed(futures):
            try:
                out.writerow([futures[future], *future.result()])
            except requests.RequestException as error:
                failed[futures[future]] = error
    return failed


with open("urls.txt") as lines, open("results.csv", "w") as results:
    out = csv.writer(results)
    failed = fetch_all([line.strip() for line in lines], out)
    failed = fetch_all(failed, out)  # A second pass over what failed.
    for url, error in failed.items():
        out.writerow([url, getattr(error.response, "status_code", ""), repr(error)])
sys.exit(1 if failed else 0)
