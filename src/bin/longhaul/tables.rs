//! The look of every table that the command prints.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table, TableComponent};
use std::ops::Range;

/// A table with a line below its header and no other.
pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(header.iter().copied());
    table.set_style(TableComponent::HeaderLines, '─');
    table.set_style(TableComponent::MiddleHeaderIntersections, '─');
    table
}

/// Puts numbers below each other.
pub(crate) fn align_numbers(table: &mut Table, columns: Range<usize>) {
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}
