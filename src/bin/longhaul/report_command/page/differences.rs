//! Two runs beside each other, figure by figure.

use super::table::{Column, Table, number};
use crate::report_command::{Run, words};
use longhaul::batch::{Comparison, Verdict};
use maud::{Markup, html};

/// The table of both.
pub(super) fn content(comparison: &Comparison) -> Markup {
    // Their pointers begin at the object itself.
    let run = Run { report: &comparison.a, letter: "", pointer: "" };
    let columns = [
        Column::Words("figure"),
        Column::Numbers("A"),
        Column::Numbers("B"),
        Column::Numbers("B against A"),
        Column::Numbers("in percent"),
        Column::Words("B is"),
    ];
    let caption = "The figures of both runs";
    let mut table = Table::new("differences-table".to_owned(), caption, &columns);
    for (at, one) in comparison.differences.iter().enumerate() {
        let value = |field: &str, value: Option<f64>, shown: fn(f64, _) -> String| match value {
            Some(value) => {
                let pointer = format!("/differences/{at}/{field}");
                number(run, pointer, value, shown(value, one.unit))
            }
            None => html! { "–" },
        };
        let class = match one.verdict {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            _ => "neither",
        };
        table.rows.push(vec![
            html! { (one.name) " " (words::unit(one.unit)) },
            value("a", one.a, words::figure),
            value("b", one.b, words::figure),
            value("change", one.change, words::change),
            value("percent", one.percent, |percent, _| words::signed_percent(percent)),
            html! { span class=(class) { (words::verdict(one.verdict)) } },
        ]);
    }
    html! {
        p {
            "Shares, rates and percentiles of both runs. ▲ is more in B than in A, ▼ is less; whether \
             that is better stands in the last column, where it can be told."
        }
        (table.render())
    }
}
