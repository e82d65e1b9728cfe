#!/usr/bin/env python3
"""CPU time per request and requests per second: longhaul run, requests, and a bare ureq loop.

All three fetch the same list from one nginx on loopback, in turns, so that a noisy machine
disturbs them alike; what counts are the ratios of the medians.

    cargo build --release --all-features --bin longhaul --example ureq_loop
    pip install requests
    python3 benches/side_by_side.py [--urls 20000] [--workers 24] [--rounds 5]

Needs nginx in the PATH or in /usr/sbin.
"""

import argparse
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

REQUESTS = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

local = threading.local()

def session():
    if not hasattr(local, "session"):
        local.session = requests.Session()
        retry = Retry(total=4, connect=3, read=2, status=3, backoff_factor=0.6,
                      status_forcelist=[408, 425, 429, 500, 502, 503, 504])
        local.session.mount("http://", HTTPAdapter(max_retries=retry, pool_maxsize=10))
    return local.session

def fetch(url):
    response = session().get(url, timeout=(5, 25))
    return response.status_code, len(response.content)

with open(sys.argv[1]) as lines, ThreadPoolExecutor(int(sys.argv[2])) as pool:
    done = list(pool.map(fetch, (line.strip() for line in lines)))
assert all(status == 200 for status, _ in done), "not all 200"
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_nginx(folder, port, page_bytes):
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    with open(os.path.join(folder, "page.html"), "wb") as page:
        page.write(b"x" * page_bytes)
    with open(os.path.join(folder, "nginx.conf"), "w") as conf:
        conf.write(
            f"""daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 2048; }}
http {{
  access_log off; keepalive_requests 1000000; client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{ listen 127.0.0.1:{port}; location / {{ root {folder}; try_files /page.html =404; }} }}
}}
"""
        )
    child = subprocess.Popen([program, "-c", os.path.join(folder, "nginx.conf"), "-p", folder])
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return child
        time.sleep(0.02)
    sys.exit("nginx did not start; see " + folder)


def measure(command):
    """Wall and CPU seconds of a command that has to succeed."""
    began = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.monotonic() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"{command} ended with {child.returncode}")
    return wall, usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--urls", type=int, default=20_000)
    parser.add_argument("--requests-urls", type=int, default=4_000, help="requests gets fewer")
    parser.add_argument("--workers", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--page-bytes", type=int, default=1024)
    parser.add_argument("--longhaul", default=os.path.join(ROOT, "target/release/longhaul"))
    parser.add_argument("--ureq", default=os.path.join(ROOT, "target/release/examples/ureq_loop"))
    args = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        port = free_port()
        nginx = start_nginx(folder, port, args.page_bytes)
        try:
            lists = {}
            for count in (args.urls, args.requests_urls):
                lists[count] = os.path.join(folder, f"urls-{count}.txt")
                with open(lists[count], "w") as out:
                    out.writelines(f"http://127.0.0.1:{port}/p/{n}\n" for n in range(count))
            script = os.path.join(folder, "with_requests.py")
            with open(script, "w") as out:
                out.write(REQUESTS)
            workers = str(args.workers)
            results = os.path.join(folder, "results.jsonl")
            contestants = {
                "longhaul run": (args.urls, [args.longhaul, "run", "-q", "--no-env",
                                 "-i", lists[args.urls], "-o", results, "-w", workers]),
                "bare ureq loop": (args.urls, [args.ureq, lists[args.urls], workers]),
                "requests": (args.requests_urls, [sys.executable, script,
                             lists[args.requests_urls], workers]),
            }
            figures = {name: [] for name in contestants}
            for _ in range(args.rounds):
                for name, (count, command) in contestants.items():
                    # longhaul does not write over results.
                    if os.path.exists(results):
                        os.remove(results)
                    wall, cpu = measure(command)
                    figures[name].append((count / wall, cpu / count * 1e6))
        finally:
            nginx.kill()
            nginx.wait()

    base_rate = statistics.median(rate for rate, _ in figures["longhaul run"])
    base_cpu = statistics.median(cpu for _, cpu in figures["longhaul run"])
    print("| | requests/s | CPU µs per request | rate, longhaul = 1 | CPU, longhaul = 1 |")
    print("|---|---:|---:|---:|---:|")
    for name, rows in figures.items():
        rate = statistics.median(rate for rate, _ in rows)
        cpu = statistics.median(cpu for _, cpu in rows)
        print(f"| {name} | {rate:.0f} | {cpu:.1f} | {rate / base_rate:.2f} | {cpu / base_cpu:.2f} |")


if __name__ == "__main__":
    main()
