//! What was meant by a name that nobody knows.

/// How alike two names have to be; clap asks as much of flags.
const ALIKE: f64 = 0.7;

/// The known name that is nearest to what was written, where one is near.
pub(super) fn nearest<'a>(
    written: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // Who writes a key as a variable, or as Rust does, means the flag.
    let plain = written.to_ascii_lowercase().replace('_', "-");
    known
        .into_iter()
        .map(|name| (strsim::jaro(&plain, &name.to_ascii_lowercase().replace('_', "-")), name))
        .filter(|(alike, _)| *alike > ALIKE)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_one_where_one_is_near() {
        let known = ["per-host", "parallel-per-proxy", "rate", "retry-after-max"];
        for (written, wanted) in [
            ("per-hots", Some("per-host")),
            ("per_host", Some("per-host")),
            ("PER-HOST", Some("per-host")),
            ("retry_after", Some("retry-after-max")),
            ("xyzzy", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, known), wanted, "{written}");
        }
        assert_eq!(nearest("LONGHAUL_RAET", ["LONGHAUL_RATE"]), Some("LONGHAUL_RATE"));
    }
}
