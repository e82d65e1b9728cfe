//! The same small job for each item of a list, on a few threads, with the answers in order.

use crate::error::{Error, ErrorKind};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Works on each item, on at most so many threads; each thread makes what it works with itself.
///
/// # Errors
/// The first error of `make`, and `Internal` where a thread panicked.
pub(super) fn each<I: Sync, S, T: Send>(
    items: &[I],
    threads: usize,
    make: impl Fn() -> Result<S, Error> + Sync,
    work: impl Fn(&mut S, usize, &I) -> T + Sync,
) -> Result<Vec<T>, Error> {
    let next = AtomicUsize::new(0);
    let done: Mutex<BTreeMap<usize, T>> = Mutex::default();
    let go_on = || -> Result<(), Error> {
        let mut state = make()?;
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { return Ok(()) };
            let result = work(&mut state, at, item);
            done.lock().unwrap_or_else(PoisonError::into_inner).insert(at, result);
        }
    };
    std::thread::scope(|scope| {
        let count = items.len().min(threads.max(1));
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(go_on)).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| {
                Err(Error::local(ErrorKind::Internal, "a thread of a check panicked"))
            })
        })
    })?;
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(done.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_in_the_order_of_the_items() {
        let items: Vec<usize> = (0..100).collect();
        for threads in [0, 1, 7, 200] {
            let doubled = each(&items, threads, || Ok(2), |two, _, item| *item * *two).unwrap();
            assert_eq!(doubled, (0..100).map(|item| item * 2).collect::<Vec<_>>());
        }
        assert!(each(&[0; 0], 4, || Ok(()), |(), _, item| *item).unwrap().is_empty());
    }

    #[test]
    fn what_cannot_be_made_is_told() {
        let broken = each(&[1, 2], 2, || Err::<(), _>(Error::config("no")), |(), _, item| *item);
        assert_eq!(broken.unwrap_err().kind(), ErrorKind::Config);
    }
}
