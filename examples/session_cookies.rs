//! When you log in once and then fetch many pages as that user: cookies, headers and connections
//! are the session's, and a cookie file takes the login over into the next run.

use longhaul::Session;
use longhaul::lab::{Origin, Received, Reply};
use longhaul::session::CookieJar;
use longhaul::time::{Clock, SystemClock};

fn site(request: &Received) -> Reply {
    match (request.path.as_str(), request.header("Cookie")) {
        ("/login", _) => Reply::redirect(303, "/account")
            .header("Set-Cookie", "login=4711; Path=/; Max-Age=3600; HttpOnly"),
        ("/account", Some("login=4711")) => Reply::ok("your account"),
        _ => Reply::new(401).body("log in first"),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let origin = Origin::builder().handler(site).start()?;
    let recipe = Session::builder().header("User-Agent", "example/1.0");

    let session = recipe.build()?;
    let form = [("user", "ada"), ("password", "secret")];
    let account = session.post(origin.url("/login")).form(form).send()?.raise_for_status()?;
    let hops = account.history().len();
    println!("after {hops} redirect at {}: {}", account.url(), account.text()?);
    assert_eq!(account.text()?, "your account");
    // One connection served all of it.
    assert_eq!(origin.counts().accepted, 1);

    // A file that curl and browsers read and write, too.
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("cookies.txt");
    let now = SystemClock.wall();
    session.with_cookies(|jar| jar.save(&file, now))?;
    let next_run = recipe.cookies(CookieJar::load(&file, now)?).build()?;
    let account = next_run.get(origin.url("/account")).send()?;
    println!("the next run, without a login: {}", account.text()?);
    assert_eq!(account.status(), 200);
    Ok(())
}
