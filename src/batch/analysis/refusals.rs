//! Who refuses, told by what the refusing responses have in common.
//!
//! Refusals of one kind share their status, the server that sent them, the rule that they matched and
//! the cookies that they set. Other fields differ from response to response (a ray has a number of
//! its own), so of these a group tells how many had one, and the first.

use super::line::LineRefused;
use super::report::{Refusal, Refusals, Sign};
use super::table::Table;

/// Kinds that are told apart.
const MOST_KINDS: usize = 1000;

/// Kinds that are told.
const TOLD: usize = 50;

#[derive(Debug, Clone)]
pub(super) struct Kinds {
    count: u64,
    table: Table<Kind>,
}

impl Default for Kinds {
    fn default() -> Self {
        Self { count: 0, table: Table::of(MOST_KINDS) }
    }
}

#[derive(Debug, Clone, Default)]
struct Kind {
    count: u64,
    /// Which refusal was the first, among all.
    first: u64,
    status: Option<u16>,
    matched: Option<String>,
    server: Option<String>,
    cookies: Vec<String>,
    cf_ray: Sign,
    x_cache: Sign,
    via: Sign,
    retry_after: Sign,
}

impl Kinds {
    pub(super) fn add(&mut self, status: Option<u16>, refused: &LineRefused<'_>) {
        self.count += 1;
        let owned = |text: &Option<_>| text.as_deref().map(str::to_owned);
        let cookies: Vec<&str> = refused.set_cookie_names.iter().map(|name| &**name).collect();
        let name = format!(
            "{status:?}\n{:?}\n{:?}\n{cookies:?}",
            refused.matched.as_deref(),
            refused.server.as_deref()
        );
        let kind = self.table.at(&name);
        kind.count += 1;
        if kind.count == 1 {
            kind.first = self.count;
            kind.status = status;
            kind.matched = owned(&refused.matched);
            kind.server = owned(&refused.server);
            kind.cookies = cookies.into_iter().map(str::to_owned).collect();
        }
        for (sign, value) in [
            (&mut kind.cf_ray, &refused.cf_ray),
            (&mut kind.x_cache, &refused.x_cache),
            (&mut kind.via, &refused.via),
            (&mut kind.retry_after, &refused.retry_after),
        ] {
            if let Some(value) = value {
                sign.count += 1;
                sign.first.get_or_insert_with(|| value.to_string());
            }
        }
    }

    pub(super) fn told(&self) -> Refusals {
        let mut kinds: Vec<&Kind> = self.table.iter().map(|(_, kind)| kind).collect();
        kinds.sort_by_key(|kind| (std::cmp::Reverse(kind.count), kind.first));
        let told: u64 = kinds.iter().take(TOLD).map(|kind| kind.count).sum();
        Refusals {
            count: self.count,
            kinds: kinds.into_iter().take(TOLD).map(Kind::told).collect(),
            others: self.count - told,
        }
    }
}

impl Kind {
    fn told(&self) -> Refusal {
        Refusal {
            count: self.count,
            status: self.status,
            matched: self.matched.clone(),
            server: self.server.clone(),
            set_cookie_names: self.cookies.clone(),
            cf_ray: self.cf_ray.clone(),
            x_cache: self.x_cache.clone(),
            via: self.via.clone(),
            retry_after: self.retry_after.clone(),
        }
    }
}
