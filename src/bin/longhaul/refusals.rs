//! What counts as a refusal, and how a refused URL is sent again.

use crate::args::RefusalArgs;
use crate::usage::UsageError;
use longhaul::policy::{BlockPage, SlowLane};

/// The rules of a run.
#[derive(Debug, Clone)]
pub(crate) struct Refusals {
    /// `None` is off.
    pub(crate) lane: Option<SlowLane>,
    /// What is a refusal beside 403.
    pub(crate) page: BlockPage,
}

impl Refusals {
    /// Fills in, checks, and refuses.
    ///
    /// # Errors
    /// The first mistake, with place and remedy.
    pub(crate) fn resolve(args: &RefusalArgs) -> Result<Self, UsageError> {
        let RefusalArgs {
            slow_lane,
            slow_lane_pause,
            slow_lane_spacing,
            block_status,
            block_header,
            block_body,
        } = args;
        let mut lane = SlowLane::default();
        let mut is_on = true;
        if let Some(times) = slow_lane {
            is_on = times.0.is_some();
            lane = times.0.map_or(lane, |times| lane.times(times.get()));
        }
        for (flag, given) in
            [("--slow-lane-pause", slow_lane_pause), ("--slow-lane-spacing", slow_lane_spacing)]
        {
            let Some(time) = given else { continue };
            if !is_on {
                return Err(UsageError::new(
                    flag,
                    "means nothing with --slow-lane off; leave one out",
                ));
            }
            if *time > SlowLane::FURTHEST {
                let most = SlowLane::FURTHEST.as_secs();
                return Err(UsageError::new(
                    flag,
                    format!("nothing waits in the slow lane for longer than {most} s; give less"),
                ));
            }
            lane = if flag.ends_with("pause") { lane.pause(*time) } else { lane.spacing(*time) };
        }
        let mut page = BlockPage::new();
        for status in block_status.iter().flat_map(longhaul::policy::Statuses::iter) {
            page = page.status(status);
        }
        for field in block_header {
            page = page
                .header(field)
                .map_err(|error| UsageError::new("--block-header", error.message()))?;
        }
        for text in block_body {
            if text.is_empty() {
                return Err(UsageError::new("--block-body", "is empty; give a text of the page"));
            }
            page = page.body(text);
        }
        Ok(Self { lane: is_on.then_some(lane), page })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::Lane;
    use longhaul::secs;

    #[test]
    fn one_lane_by_default_and_mistakes_with_their_remedy() {
        let resolve = |change: &dyn Fn(&mut RefusalArgs)| {
            let mut args = RefusalArgs::default();
            change(&mut args);
            Refusals::resolve(&args)
        };
        let plain = resolve(&|_| {}).unwrap();
        assert_eq!(plain.lane, Some(SlowLane::default()));
        assert!(plain.page.is_empty());
        let off = resolve(&|args| args.slow_lane = Some(Lane(None))).unwrap();
        assert_eq!(off.lane, None);
        let other = resolve(&|args| {
            args.slow_lane = Some(Lane("3".parse().ok()));
            args.slow_lane_pause = Some(secs(60.0));
            args.slow_lane_spacing = Some(secs(0.5));
        });
        let wanted = SlowLane::default().times(3).pause(secs(60.0)).spacing(secs(0.5));
        assert_eq!(other.unwrap().lane, Some(wanted));
        let refused = |change: fn(&mut RefusalArgs), words: &str| {
            let line = resolve(&change).unwrap_err().to_string();
            assert!(line.contains(words), "{line}");
        };
        refused(
            |args| args.slow_lane_pause = Some(secs(601.0)),
            "--slow-lane-pause: nothing waits",
        );
        refused(
            |args| {
                args.slow_lane = Some(Lane(None));
                args.slow_lane_spacing = Some(secs(1.0));
            },
            "--slow-lane-spacing: means nothing",
        );
        refused(|args| args.block_header.push("x".into()), "--block-header: a block page");
        refused(|args| args.block_body.push(String::new()), "--block-body: is empty");
    }
}
