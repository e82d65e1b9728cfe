//! `-w auto` against a site that bears so many at once and refuses the others.

use super::job::{Job, retries};
use super::support::crowded::crowded;

#[test]
fn what_a_site_bears_is_found_by_the_command_and_told_in_its_summary() {
    let origin = crowded(40);
    let job = Job::new((0..4000).map(|page| origin.url(&format!("/{page}"))));
    let ended = job.run(&["-w", "auto:300"]);
    ended.assert_code(0);
    let (records, retries) = (job.all_ok_once(), retries(&job.records()));
    let line = ended.stderr.lines().find_map(|line| line.trim().strip_prefix("at once, as found"));
    let numbers: Vec<usize> = line
        .unwrap()
        .split(|character: char| !character.is_ascii_digit())
        .filter_map(|word| word.parse().ok())
        .collect();
    let [last, most, lowered] = numbers[..] else { panic!("{line:?}") };
    // On a machine that is busy it may be a few less; more would be refused.
    assert!((28..=44).contains(&last) && (32..=48).contains(&most), "{line:?}");
    assert!(lowered > 0, "{line:?}");
    assert!(retries * 50 < records.len(), "{retries} refusals");
    println!("{}; {retries} retries, {}", line.unwrap().trim(), ended.took());
}
