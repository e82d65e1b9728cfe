//! Ranges of time on a logarithmic axis: from the median to 99 %, with 95 % between.

use super::{Hue, Size, drawn, letters};
use plotters::prelude::*;

/// A name with its percentiles in milliseconds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Range {
    pub(crate) name: String,
    pub(crate) p50: f64,
    pub(crate) p95: f64,
    pub(crate) p99: f64,
}

/// The least that the axis shows.
const LEAST: f64 = 0.01;

/// How high a range is.
const STEP: u32 = 36;

/// The ranges from top to bottom; `None` where there is nothing to draw.
pub(crate) fn ranges(size: Size, ranges: &[Range]) -> Option<String> {
    let all = || ranges.iter().flat_map(|range| [range.p50, range.p99]);
    let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    if ranges.is_empty() || !low.is_finite() {
        return None;
    }
    // From a power of ten to a power of ten.
    let low = 10f64.powf(low.max(LEAST).log10().floor());
    let high = 10f64.powf(high.max(low * 1.01).log10().ceil());
    let count = u32::try_from(ranges.len()).ok()?;
    let size = Size { height: STEP * count + 44, ..size };
    drawn(size, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(4)
            .margin_right(28)
            .x_label_area_size(30)
            .y_label_area_size(98)
            .build_cartesian_2d(
                (low..high).log_scale().with_key_points(powers(low, high, size)),
                -f64::from(count)..0.0,
            )?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .light_line_style(Hue::Grid.colour().mix(0.0))
            .bold_line_style(Hue::Grid.colour())
            .axis_style(Hue::Grid.colour())
            .x_label_style(letters(15, Hue::Ink))
            .x_label_formatter(&|ms| tick(*ms))
            .y_labels(0)
            .draw()?;
        let middle = |place: u32| -f64::from(place) - 0.5;
        for (place, range) in (0..).zip(ranges) {
            let y = middle(place);
            let at = |ms: f64| (ms.max(low), y);
            let line = ShapeStyle::from(Hue::Blue.colour()).stroke_width(3);
            chart.draw_series([PathElement::new([at(range.p50), at(range.p99)], line)])?;
            let filled = |hue: Hue| ShapeStyle::from(hue.colour()).filled();
            chart.draw_series([Circle::new(at(range.p50), 5, filled(Hue::Blue))])?;
            chart.draw_series([TriangleMarker::new(at(range.p95), 7, filled(Hue::Orange))])?;
            let cross = ShapeStyle::from(Hue::Red.colour()).stroke_width(3);
            chart.draw_series([Cross::new(at(range.p99), 5, cross)])?;
            let (_, pixel) = chart.backend_coord(&at(range.p50));
            let name = Text::new(range.name.clone(), (2, pixel - 8), letters(16, Hue::Ink));
            area.draw(&name)?;
        }
        Ok(())
    })
}

/// Powers of ten, fewer where there is little room.
fn powers(low: f64, high: f64, size: Size) -> Vec<f64> {
    let decades = (high / low).log10().round().max(1.0) as u32;
    let every = if size.is_narrow() && decades > 4 { 2 } else { 1 };
    (0..=decades).step_by(every).map(|power| low * 10f64.powi(power as i32)).collect()
}

fn tick(ms: f64) -> String {
    match ms {
        ms if ms < 999.0 => format!("{} ms", ms_text(ms)),
        ms => format!("{} s", ms_text(ms / 1000.0)),
    }
}

fn ms_text(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
