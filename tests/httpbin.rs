//! Sessions against httpbin, endpoint by endpoint: what requests is tried on, with the answers that
//! its users know.
#![cfg(all(feature = "lab", unix))]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking, as tests do"
)]

mod support;

use http::Method;
use longhaul::error::{ErrorKind, Phase};
use longhaul::message::{Auth, Body, Multipart, Part};
use longhaul::session::SessionBuilder;
use longhaul::{Response, Retry, Session, Timeouts, secs};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use support::httpbin::Httpbin;

fn recipe() -> SessionBuilder {
    Session::builder().trust_env(false)
}

fn session() -> Session {
    recipe().build().unwrap()
}

fn json_of(response: &Response) -> Value {
    assert_eq!(response.status(), 200, "{}", response.text().unwrap());
    response.json().unwrap()
}

fn names(session: &Session) -> BTreeMap<String, String> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    session.with_cookies(|jar| jar.iter().map(|c| (text(c.name()), text(c.value()))).collect())
}

fn map<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

#[test]
fn every_status_is_handed_out_and_raised_on_demand() {
    let Some(httpbin) = Httpbin::shared() else { return };
    let session = session();
    for status in [200, 201, 202, 204, 206, 300, 304, 400, 401, 403, 404, 406, 410, 418, 429, 500] {
        let response = session.get(httpbin.url(&format!("/status/{status}"))).send().unwrap();
        assert_eq!((response.status(), response.ok()), (status, status < 400));
        match response.raise_for_status() {
            Ok(_) => assert!(status < 400),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::HttpStatus);
                assert!(error.message().starts_with(&status.to_string()), "{error}");
                assert_eq!(error.response().unwrap().status(), status);
            }
        }
    }
    let tea = session.get(httpbin.url("/status/418")).send().unwrap();
    assert_eq!(tea.reason(), "I'M A TEAPOT");
    assert!(tea.text().unwrap().contains("teapot"));
}

#[test]
fn a_status_of_the_forcelist_is_asked_for_again() {
    let Some(httpbin) = Httpbin::shared() else { return };
    let retry =
        Retry::long_run().total(2).backoff(longhaul::policy::Backoff::exponential(Duration::ZERO));
    let session = recipe().retry(retry).build().unwrap();
    let response = session.get(httpbin.url("/status/503")).send().unwrap();
    assert_eq!((response.status(), response.attempts().len()), (503, 3));
    let log = httpbin
        .program()
        .wait_for_log("access.log", |log| log.matches("GET /status/503 503").count() >= 3);
    assert_eq!(log.matches("GET /status/503 503").count(), 3);
    // Nothing says that a POST may be sent twice.
    let response = session.post(httpbin.url("/status/502")).send().unwrap();
    assert_eq!((response.status(), response.attempts().len()), (502, 1));
}

#[test]
fn methods_parameters_and_fields_arrive() {
    let Some(httpbin) = Httpbin::shared() else { return };
    let session = session();
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
        let method: Method = method.parse().unwrap();
        for path in [format!("/{}", method.as_str().to_lowercase()), "/anything/a/b".to_owned()] {
            let told = session
                .request(method.clone(), httpbin.url(&path))
                .param("q", "a b&c")
                .param("q", "ü")
                .header("X-Twice", "1")
                .send();
            let told = json_of(&told.unwrap());
            assert_eq!(told["args"], json!({"q": ["a b&c", "ü"]}));
            assert_eq!(told["headers"]["X-Twice"], "1");
            assert_eq!(told["origin"], "127.0.0.1");
            if path.starts_with("/anything") {
                assert_eq!(told["method"], method.as_str());
            }
        }
    }
    let fields = json_of(&session.get(httpbin.url("/headers")).send().unwrap());
    let fields = fields["headers"].as_object().unwrap();
    let names: Vec<&str> = fields.keys().map(String::as_str).collect();
    assert_eq!(names, ["Accept", "Accept-Encoding", "Connection", "Host", "User-Agent"]);
    let agent = json_of(&session.get(httpbin.url("/user-agent")).send().unwrap());
    assert_eq!(agent["user-agent"], fields["User-Agent"]);
    let head = session.head(httpbin.url("/get")).send().unwrap();
    assert_eq!((head.status(), head.body()), (200, &b""[..]));
    let options = session.options(httpbin.url("/get")).send().unwrap();
    assert!(options.headers()["allow"].to_str().unwrap().contains("GET"));
}

#[test]
fn bodies_arrive_as_what_they_are() {
    let Some(httpbin) = Httpbin::shared() else { return };
    let (session, url) = (session(), httpbin.url("/post"));
    let form = session.post(&*url).form([("a", "1"), ("a", "ü &="), ("b", "")]).send();
    assert_eq!(json_of(&form.unwrap())["form"], json!({"a": ["1", "ü &="], "b": ""}));
    let value = json!({"name": "köln", "list": [1, null]});
    let told = json_of(&session.post(&*url).json(&value).send().unwrap());
    assert_eq!(
        (&told["json"], &told["headers"]["Content-Type"]),
        (&value, &"application/json".into())
    );
    let told = json_of(&session.put(httpbin.url("/put")).body("plain text").send().unwrap());
    assert_eq!(told["data"], "plain text");
    // One reader says how long it is, the other cannot.
    for length in [Some(200_000), None] {
        let reader = std::io::Read::take(std::io::repeat(b'x'), 200_000);
        let told = session.post(&*url).body(Body::reader(reader, length)).send().unwrap();
        let told = json_of(&told);
        assert_eq!(told["data"].as_str().unwrap().len(), 200_000);
        let framing = if length.is_some() { "Content-Length" } else { "Transfer-Encoding" };
        assert!(told["headers"][framing].is_string(), "{}", told["headers"]);
    }
}

#[test]
fn forms_with_files_arrive() {
    let Some(httpbin) = Httpbin::shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("naïve.txt");
    std::fs::write(&path, "from a file\r\n").unwrap();
    let form = Multipart::new()
        .field("a \"b\"", "ü")
        .file("file", &path)
        .part(Part::new("bytes", "in memory").file_name("x.bin").content_type("text/plain"));
    let told = session().post(httpbin.url("/post")).multipart(form).send().unwrap();
    let told = json_of(&told);
    assert_eq!(told["form"], json!({"a \"b\"": "ü"}));
    assert_eq!(told["files"], json!({"bytes": "in memory", "file": "from a file\r\n"}));
    assert!(told["headers"]["Content-Length"].is_string(), "{told}");
}

#[test]
fn redirects_of_every_kind() {
    let Some(httpbin) = Httpbin::shared() else { return };
    let session = session();
    for path in ["/redirect/4", "/relative-redirect/4", "/absolute-redirect/4"] {
        let response = session.get(httpbin.url(path)).send().unwrap();
        assert_eq!(response.url().as_str(), httpbin.url("/get"), "{path}");
        let statuses: Vec<u16> = response.history().iter().map(Response::status).collect();
        assert_eq!(statuses, [302; 4], "{path}");
    }
    let first = session.get(httpbin.url("/redirect/2")).allow_redirects(false).send().unwrap();
    assert!(first.is_redirect() && first.history().is_empty());

    // Which method goes on, and whether with its body: by the browsers and by requests.
    for (status, method, data) in [
        (301, "GET", ""),
        (302, "GET", ""),
        (303, "GET", ""),
        (307, "POST", "body"),
        (308, "POST", "body"),
    ] {
        let to = format!("/redirect-to?url=/anything&status_code={status}");
        let told = json_of(&session.post(httpbin.url(&to)).body("body").send().unwrap());
        assert_eq!((&told["method"], &told["data"]), (&method.into(), &data.into()), "{status}");
    }
    // To another origin the credentials do not go along, to the same they do.
    let elsewhere = httpbin.url("/headers").replace("127.0.0.1", "localhost");
    for (to, goes_along) in [(elsewhere, false), (httpbin.url("/headers"), true)] {
        let told = session
            .get(httpbin.url("/redirect-to"))
            .param("url", to)
            .header("Authorization", "Bearer x")
            .send();
        let told = json_of(&told.unwrap());
        assert_eq!(told["headers"]["Authorization"].is_string(), goes_along, "{told}");
    }
    let few = recipe().max_redirects(3).build().unwrap();
    let error = few.get(httpbin.url("/redirect/4")).send().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooManyRedirects);
    assert_eq!(error.response().unwrap().history().len(), 3);
}

#[test]
fn cookies_are_set_sent_and_deleted() {
    let Some(httpbin) = Httpbin::shared() else { return };
    let session = session();
    let sent = |response: Response| json_of(&response)["cookies"].clone();
    let response = session.get(httpbin.url("/cookies/set?a=1&b=two")).send().unwrap();
    assert_eq!(sent(response), json!({"a": "1", "b": "two"}));
    let response = session.get(httpbin.url("/cookies/set/c/3")).send().unwrap();
    assert_eq!(sent(response), json!({"a": "1", "b": "two", "c": "3"}));
    assert_eq!(names(&session), map([("a", "1"), ("b", "two"), ("c", "3")]));
    let response = session.get(httpbin.url("/cookies/delete?a&c")).send().unwrap();
    assert_eq!(sent(response), json!({"b": "two"}));
    assert_eq!(names(&session), map([("b", "two")]));
    // Another host has not heard of them.
    let other = httpbin.url("/cookies").replace("127.0.0.1", "localhost");
    assert_eq!(sent(session.get(other).send().unwrap()), json!({}));
}

#[test]
fn credentials_are_sent_where_they_belong() {
    let Some(httpbin) = Httpbin::shared() else { return };
    let session = session();
    let status = |path: &str, user: Option<(&str, &str)>| {
        let request = session.get(httpbin.url(path));
        let request = match user {
            Some((user, password)) => request.basic_auth(user, password),
            None => request,
        };
        request.send().unwrap().status()
    };
    for (path, none) in [("/basic-auth/anna/s3cret", 401), ("/hidden-basic-auth/anna/s3cret", 404)]
    {
        assert_eq!(status(path, None), none);
        assert_eq!(status(path, Some(("anna", "wrong"))), none);
        assert_eq!(status(path, Some(("anna", "s3cret"))), 200);
    }
    let inside = httpbin.url("/basic-auth/anna/s3cret").replace("http://", "http://anna:s3cret@");
    let response = session.get(inside).send().unwrap();
    assert_eq!(json_of(&response), json!({"authenticated": true, "user": "anna"}));
    assert_eq!(response.url().as_str(), httpbin.url("/basic-auth/anna/s3cret"));

    let bearer = session.get(httpbin.url("/bearer"));
    assert_eq!(bearer.send().unwrap().status(), 401);
    let told = json_of(&session.get(httpbin.url("/bearer")).bearer("t0ken").send().unwrap());
    assert_eq!(told, json!({"authenticated": true, "token": "t0ken"}));
}

#[test]
fn digest_with_each_of_its_algorithms() {
    let Some(httpbin) = Httpbin::shared() else { return };
    let anna = || Auth::Digest("anna".into(), "s3cret".into());
    for qop in ["auth", "auth-int", "undefined"] {
        for algorithm in ["", "/MD5", "/SHA-256", "/SHA-512", "/MD5/never"] {
            let path = format!("/digest-auth/{qop}/anna/s3cret{algorithm}");
            let session = session();
            let response = session.get(httpbin.url(&path)).auth(anna()).send().unwrap();
            assert_eq!(response.status(), 200, "{path}: {:?}", response.attempts());
            assert_eq!(json_of(&response), json!({"authenticated": true, "user": "anna"}));
            let statuses: Vec<_> = response.attempts().iter().map(|made| made.status).collect();
            assert_eq!(statuses, [Some(401), Some(200)], "{path}");
            // With the nonce that is known by now.
            let again = session.get(httpbin.url(&path)).auth(anna()).send().unwrap();
            assert_eq!((again.status(), again.attempts().len()), (200, 1), "{path}");

            let wrong = Auth::Digest("anna".into(), "wrong".into());
            let response = crate::session().get(httpbin.url(&path)).auth(wrong).send().unwrap();
            assert_eq!(response.status(), 401, "{path}");
            let none = crate::session().get(httpbin.url(&path)).send().unwrap();
            assert_eq!((none.status(), none.attempts().len()), (401, 1), "{path}");
        }
    }
    // Here a nonce goes stale after one use, which the server knows by cookies of its challenges: they
    // have to come with the answers, or nothing is ever stale.
    let session = session();
    for number in 0..3 {
        let url = httpbin.url("/digest-auth/auth/anna/s3cret/MD5/1");
        let response = session.get(url).auth(anna()).send().unwrap();
        let statuses: Vec<_> = response.attempts().iter().map(|made| made.status).collect();
        assert_eq!(statuses, [Some(401), Some(200)], "{number}");
        assert_eq!(names(&session)["fake"], "fake_value");
    }
}

#[test]
fn content_codings_are_undone() {
    let Some(httpbin) = Httpbin::shared() else { return };
    let session = session();
    let mut codings = vec![("/gzip", "gzipped", "gzip"), ("/deflate", "deflated", "deflate")];
    if cfg!(feature = "brotli") {
        codings.push(("/brotli", "brotli", "br"));
    }
    for (path, key, coding) in codings {
        let response = session.get(httpbin.url(path)).send().unwrap();
        assert_eq!(response.headers()["content-encoding"], coding);
        assert!(response.wire_bytes() != response.body().len() as u64);
        assert_eq!(json_of(&response)[key], true, "{path}");
        let streamed = session.get(httpbin.url(path)).stream(true).send().unwrap();
        assert_eq!(json_of(&streamed)[key], true, "{path}");
    }
}

#[test]
fn bodies_that_come_in_pieces() {
    let Some(httpbin) = Httpbin::shared() else { return };
    let session = session();
    let lines = session.get(httpbin.url("/stream/100")).stream(true).send().unwrap().lines();
    let ids: Vec<u64> = lines
        .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap()["id"].as_u64().unwrap())
        .collect();
    assert_eq!(ids, (0..100).collect::<Vec<_>>());

    // The seed says which bytes, and how they are cut says nothing.
    let whole = session.get(httpbin.url("/stream-bytes/5000?seed=7&chunk_size=4999")).send();
    let pieces = session
        .get(httpbin.url("/stream-bytes/5000?seed=7&chunk_size=1"))
        .stream(true)
        .send()
        .unwrap();
    assert!(pieces.headers().get("content-length").is_none());
    let pieces: Vec<Vec<u8>> = pieces.chunks(999).map(Result::unwrap).collect();
    assert_eq!(pieces.iter().map(Vec::len).collect::<Vec<_>>(), [999, 999, 999, 999, 999, 5]);
    assert_eq!(pieces.concat(), whole.unwrap().body());
    let exact = session.get(httpbin.url("/bytes/1234")).send().unwrap();
    assert_eq!(
        (exact.body().len(), &exact.headers()["content-length"]),
        (1234, &"1234".parse().unwrap())
    );
    let too_much = recipe().max_body_bytes(1000).build().unwrap();
    let error = too_much.get(httpbin.url("/bytes/1234")).send().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);

    // One byte at a time is no silence; the deadline is another thing.
    let patient = Timeouts::default().with_read(secs(20.0)).unwrap();
    let drip = httpbin.url("/drip?numbytes=5&duration=0.2&code=201");
    let response = session.get(&*drip).timeout(patient).send().unwrap();
    assert_eq!((response.status(), response.body()), (201, &b"*****"[..]));
}

#[test]
fn who_takes_too_long_is_left() {
    let Some(httpbin) = Httpbin::shared() else { return };
    let session = session();
    let short = Timeouts::default().with_read(secs(0.3)).unwrap();
    let error = session.get(httpbin.url("/delay/3")).timeout(short).send().unwrap_err();
    assert_eq!((error.kind(), error.phase()), (ErrorKind::ReadTimeout, Phase::Headers));
    let due = Timeouts::default().with_deadline(secs(0.3)).unwrap();
    let error =
        session.get(httpbin.url("/drip?numbytes=300&duration=3")).timeout(due).send().unwrap_err();
    assert_eq!((error.kind(), error.phase()), (ErrorKind::Deadline, Phase::Body));
    let told = session.get(httpbin.url("/delay/0.1")).send().unwrap();
    assert_eq!(json_of(&told)["url"], httpbin.url("/delay/0.1"));
}

#[test]
fn a_part_and_what_is_not_there() {
    let Some(httpbin) = Httpbin::shared() else { return };
    let session = session();
    let range = |wanted: &str| {
        session
            .get(httpbin.url("/range/1000?chunk_size=64"))
            .header("Range", wanted)
            .send()
            .unwrap()
    };
    let letters: String = (0..1000_u32).map(|at| char::from(b'a' + (at % 26) as u8)).collect();
    for (wanted, status, part, content_range) in [
        ("bytes=0-", 200, &letters[..], "bytes 0-999/1000"),
        ("bytes=100-199", 206, &letters[100..200], "bytes 100-199/1000"),
        ("bytes=900-", 206, &letters[900..], "bytes 900-999/1000"),
        ("bytes=-10", 206, &letters[990..], "bytes 990-999/1000"),
        ("bytes=2000-", 416, "", "bytes */1000"),
    ] {
        let response = range(wanted);
        assert_eq!(
            (response.status(), response.text().unwrap().as_str()),
            (status, part),
            "{wanted}"
        );
        assert_eq!(response.headers()["content-range"], content_range);
        assert_eq!(response.headers()["etag"], "range1000");
    }
}

#[test]
fn what_has_not_changed_is_not_sent() {
    let Some(httpbin) = Httpbin::shared() else { return };
    let session = session();
    let status = |path: &str, name: &str, value: &str| {
        session.get(httpbin.url(path)).header(name, value).send().unwrap().status()
    };
    let first = session.get(httpbin.url("/etag/abc")).send().unwrap();
    assert_eq!((first.status(), &first.headers()["etag"]), (200, &"abc".parse().unwrap()));
    assert_eq!(status("/etag/abc", "If-None-Match", "abc"), 304);
    assert_eq!(status("/etag/abc", "If-None-Match", "\"other\", W/\"abc\""), 304);
    assert_eq!(status("/etag/abc", "If-None-Match", "other"), 200);
    assert_eq!(status("/etag/abc", "If-Match", "other"), 412);
    let first = session.get(httpbin.url("/cache")).send().unwrap();
    let since = first.headers()["last-modified"].to_str().unwrap();
    assert_eq!(status("/cache", "If-Modified-Since", since), 304);
    let known = first.validators();
    assert_eq!(known.last_modified(), Some(since));
    let again = session.get(httpbin.url("/cache")).if_changed(&known).send().unwrap();
    assert!(again.not_modified() && again.body().is_empty());
    let told = session.get(httpbin.url("/cache/60")).send().unwrap();
    assert_eq!(told.headers()["cache-control"], "public, max-age=60");
}

#[test]
fn text_is_text_and_images_are_bytes() {
    let Some(httpbin) = Httpbin::shared() else { return };
    let session = session();
    let text = |path: &str| session.get(httpbin.url(path)).send().unwrap().text().unwrap();
    assert!(text("/encoding/utf8").contains("STARGΛ̊TE SG-1"));
    assert!(text("/encoding/utf8").contains("ሰማይ አይታረስ ንጉሥ አይከሰስ።"));
    assert!(text("/html").contains("Herman Melville"));
    assert!(text("/xml").starts_with("<?xml version='1.0' encoding='us-ascii'?>"));
    assert_eq!(text("/robots.txt"), "User-agent: *\nDisallow: /deny\n");
    assert!(text("/deny").contains("YOU SHOULDN'T BE HERE"));
    assert_eq!(text("/base64/bG9uZ2hhdWw="), "longhaul");
    assert!(text("/forms/post").contains("<form"));
    assert!(text("/links/3/0").contains("<a href='/links/3/1'>1</a>"));
    let slides = json_of(&session.get(httpbin.url("/json")).send().unwrap());
    assert_eq!(slides["slideshow"]["author"], "Yours Truly");
    let unique = json_of(&session.get(httpbin.url("/uuid")).send().unwrap());
    assert_eq!(unique["uuid"].as_str().unwrap().len(), 36);

    for (kind, media, beginning) in [
        ("png", "image/png", &b"\x89PNG\r\n"[..]),
        ("jpeg", "image/jpeg", b"\xff\xd8\xff"),
        ("webp", "image/webp", b"RIFF"),
        ("svg", "image/svg+xml", b"<svg"),
    ] {
        for (path, accept) in [(format!("/image/{kind}"), "*/*"), ("/image".to_owned(), media)] {
            let response = session.get(httpbin.url(&path)).header("Accept", accept).send().unwrap();
            assert_eq!(response.content_type(), Some(media), "{path}");
            assert!(response.body().starts_with(beginning), "{path}");
        }
    }
}

#[test]
fn fields_that_stand_there_twice() {
    let Some(httpbin) = Httpbin::shared() else { return };
    let path = "/response-headers?X-One=1&X-Two=2&X-Two=zwei&X-Empty=";
    let response = session().get(httpbin.url(path)).send().unwrap();
    let all = |name: &str| -> Vec<&str> {
        response.headers().get_all(name).iter().map(|value| value.to_str().unwrap()).collect()
    };
    assert_eq!(all("x-two"), ["2", "zwei"]);
    assert_eq!((all("x-one"), all("x-empty")), (vec!["1"], vec![""]));
    assert_eq!(json_of(&response)["X-Two"], json!(["2", "zwei"]));
}

#[test]
fn one_connection_is_enough() {
    let Some(httpbin) = Httpbin::shared() else { return };
    let session = session();
    for number in 0..20 {
        let response = session.get(httpbin.url("/bytes/100")).send().unwrap();
        assert_eq!(response.connection().reused, number > 0, "{number}");
    }
}
