//! What happened along time: stacks of steps, and lines.

use super::{Area, Drawn, Hue, Size, drawn, letters, on_axis};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use plotters::coord::combinators::WithKeyPoints;
use plotters::coord::types::{RangedCoordf64, RangedCoordi64};
use plotters::prelude::*;
use std::ops::Range;

/// What is in a step, from the bottom to the top.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stack {
    /// When it begins, in seconds since 1970.
    pub(crate) from: i64,
    pub(crate) parts: Vec<(f64, Hue)>,
}

/// Distances of the marks of the axis, in seconds.
const DISTANCES: [i64; 22] = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400,
    172_800, 604_800, 2_592_000, 31_536_000,
];

/// Steps of one width, each a stack; `None` where there is nothing to draw.
pub(crate) fn stacks(size: Size, width: u64, stacks: &[Stack]) -> Option<String> {
    let width = i64::try_from(width).ok()?;
    let span = stacks.first()?.from..stacks.last()?.from.checked_add(width)?;
    let most = stacks.iter().map(|stack| stack.parts.iter().map(|part| part.0).sum());
    let most = most.fold(0.0, f64::max);
    // Between few steps there is a gap, between many none could be seen.
    let gap = if stacks.len() <= 60 { width / 12 } else { 0 };
    drawn(size, |area| {
        chart(area, size, span, most, |chart| {
            for stack in stacks {
                let (left, right) = (stack.from, stack.from + width - gap);
                let mut bottom = 0.0;
                for (value, hue) in stack.parts.iter().filter(|part| part.0 > 0.0) {
                    let corners = [(left, bottom), (right, bottom + value)];
                    chart.draw_series([Rectangle::new(corners, hue.colour().filled())])?;
                    bottom += value;
                }
            }
            Ok(())
        })
    })
}

/// A line through points in time; `None` where there is nothing to draw.
pub(crate) fn lines(size: Size, width: u64, points: &[(i64, f64)], hue: Hue) -> Option<String> {
    let width = i64::try_from(width).ok()?;
    let span = points.first()?.0..points.last()?.0.checked_add(width)?;
    let most = points.iter().map(|point| point.1).fold(0.0, f64::max);
    drawn(size, |area| {
        chart(area, size, span, most, |chart| {
            // A step is as high from its beginning to its end.
            let corners =
                points.iter().flat_map(|(from, value)| [(*from, *value), (from + width, *value)]);
            let line = ShapeStyle::from(hue.colour()).stroke_width(2);
            let below = AreaSeries::new(corners.clone(), 0.0, hue.colour().mix(0.15));
            chart.draw_series(below)?;
            chart.draw_series(LineSeries::new(corners, line))?;
            Ok(())
        })
    })
}

type Chart<'a, 'b> =
    ChartContext<'a, SVGBackend<'b>, Cartesian2d<WithKeyPoints<RangedCoordi64>, RangedCoordf64>>;

/// The axes, and what is drawn between them.
fn chart<'b>(
    area: &Area<'b>,
    size: Size,
    span: Range<i64>,
    most: f64,
    draw: impl FnOnce(&mut Chart<'_, 'b>) -> Drawn,
) -> Drawn {
    let most = if most > 0.0 { 1.05 * most } else { 1.0 };
    let marks = marks(&span, if size.is_narrow() { 4 } else { 8 });
    let distance = marks.get(1).zip(marks.first()).map_or(0, |(second, first)| second - first);
    let mut chart = ChartBuilder::on(area)
        .margin(4)
        .margin_top(10)
        .margin_right(26)
        .x_label_area_size(30)
        .y_label_area_size(54)
        .build_cartesian_2d(span.with_key_points(marks), 0.0..most)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(Hue::Grid.colour().mix(0.0))
        .bold_line_style(Hue::Grid.colour())
        .axis_style(Hue::Grid.colour())
        .label_style(letters(15, Hue::Ink))
        .y_labels(5)
        .x_label_formatter(&|second| mark(*second, distance))
        .y_label_formatter(&|height| on_axis(*height))
        .draw()?;
    draw(&mut chart)
}

/// Where the marks of the time axis are, at most so many.
fn marks(span: &Range<i64>, most: i64) -> Vec<i64> {
    let length = (span.end - span.start).max(1);
    let fits = |distance: &i64| length / distance < most;
    let distance = DISTANCES.into_iter().find(fits).unwrap_or(length / most + 1).max(1);
    let first = span.start.div_euclid(distance) * distance;
    (0..=length / distance + 1)
        .map(|mark| first + mark * distance)
        .filter(|mark| span.contains(mark))
        .collect()
}

/// A mark of the time axis: the time of day, or the date where marks are days apart.
fn mark(second: i64, distance: i64) -> String {
    let Ok(at) = Timestamp::from_second(second) else { return String::new() };
    let at = at.to_zoned_datetime(TimeZone::UTC);
    let form = match distance {
        0..60 => "%H:%M:%S",
        60..86_400 if second % 86_400 == 0 => "%d %b",
        60..86_400 => "%H:%M",
        86_400..2_592_000 => "%d %b",
        _ => "%b %Y",
    };
    at.strftime(form).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_and_few() {
        let hour = 1_772_402_400;
        for (length, most, wanted) in [
            (3600, 8, vec!["22:00", "22:10", "22:20", "22:30", "22:40", "22:50"]),
            (28_800, 4, vec!["02 Mar", "03:00"]),
            (5, 8, vec!["22:00:00", "22:00:01", "22:00:02", "22:00:03", "22:00:04"]),
        ] {
            let marks = marks(&(hour..hour + length), most);
            let distance = marks[1] - marks[0];
            let shown: Vec<_> = marks.iter().map(|second| mark(*second, distance)).collect();
            assert_eq!(shown, wanted);
        }
        for length in (1..40).map(|power| 3_i64.saturating_pow(power)) {
            assert!(marks(&(hour..hour + length), 8).len() <= 9, "{length}");
        }
    }
}
