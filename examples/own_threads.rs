//! When you have threads of your own, or rayon's: they share one recipe, and `local` gives
//! each thread its own session of it, with cookies and connections that last as long as the thread.

use longhaul::Session;
use longhaul::lab::{Origin, Reply};
use rayon::prelude::*;

fn main() -> Result<(), longhaul::Error> {
    let origin = Origin::builder().handler(|request| Reply::ok(&request.path)).start()?;
    let recipe = Session::builder().header("User-Agent", "example/1.0");
    let fetch = |page: usize| {
        let url = origin.url(&format!("/{page}"));
        recipe.local(|session| session.get(url).send()?.text())?
    };

    std::thread::scope(|scope| {
        for thread in 0..3 {
            scope.spawn(move || (0..20).try_for_each(|page| fetch(thread * 20 + page).map(drop)));
        }
    });
    assert_eq!((origin.counts().requests, origin.counts().accepted), (60, 3));

    let lengths: Result<Vec<usize>, longhaul::Error> =
        (0..100).into_par_iter().map(|page| fetch(page).map(|text| text.len())).collect();
    println!(
        "{} bytes over {} connections",
        lengths?.iter().sum::<usize>(),
        origin.counts().accepted
    );
    assert!(origin.counts().accepted <= 3 + rayon::current_num_threads() as u64);
    Ok(())
}
