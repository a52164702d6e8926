//! What was measured: one figure per line, as a table for people and as JSON for programs.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use serde::Serialize;

use super::load::Measured;
use super::machine::Machine;

/// What a figure is to reach.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
}

/// One figure.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// Which part of the bench it is from.
    pub part: &'static str,
    /// What was measured.
    pub what: String,
    /// The figure.
    pub value: f64,
    /// What it counts: `/s`, `ms`, `s`, `MB`, `bytes`, or nothing.
    pub unit: &'static str,
    /// What it is to reach, if anything was promised.
    pub target: Option<Target>,
    /// The same of the bare handler in the same run.
    pub roof: Option<f64>,
}

impl Figure {
    /// It is to be at least this.
    pub fn at_least(&mut self, least: f64) {
        self.target = Some(Target::AtLeast(least));
    }

    /// It is to be at most this.
    pub fn at_most(&mut self, most: f64) {
        self.target = Some(Target::AtMost(most));
    }

    /// Whether it is as promised; none if nothing was.
    pub fn is_met(&self) -> Option<bool> {
        Some(match self.target? {
            Target::AtLeast(least) => self.value >= least,
            Target::AtMost(most) => self.value <= most,
        })
    }
}

/// The figures of a load.
pub struct LoadFigures<'a> {
    /// Good answers a second.
    pub rate: &'a mut Figure,
    /// What 99 of 100 did not exceed.
    pub slow: &'a mut Figure,
}

/// Everything that was measured, in order.
#[derive(Debug, Serialize)]
pub struct Report {
    /// On what.
    pub machine: Machine,
    /// The figures.
    pub figures: Vec<Figure>,
}

impl Report {
    /// Adds a figure and gives it back, to say more of it.
    pub fn add(
        &mut self,
        part: &'static str,
        what: &str,
        value: f64,
        unit: &'static str,
    ) -> &mut Figure {
        self.figures.push(Figure {
            part,
            what: what.to_owned(),
            value,
            unit,
            target: None,
            roof: None,
        });
        let last = self.figures.len() - 1;
        &mut self.figures[last]
    }

    /// Adds what nothing of may happen.
    pub fn expect_none(&mut self, part: &'static str, what: impl AsRef<str>, count: u64) {
        self.add(part, what.as_ref(), count as f64, "").at_most(0.0);
    }

    /// Adds the figures of a load: rate, median, 99 of 100, failures; in this order.
    pub fn add_load(
        &mut self,
        part: &'static str,
        what: &str,
        measured: &Measured,
    ) -> LoadFigures<'_> {
        self.add(part, what, measured.per_s(), "/s");
        self.add(part, &format!("{what}: median"), measured.ms(500), "ms");
        self.add(part, &format!("{what}: 99 %"), measured.ms(990), "ms");
        self.expect_none(part, format!("{what}: failed"), measured.bad());
        let first = self.figures.len() - 4;
        let [rate, _, slow, _] = &mut self.figures[first..] else {
            unreachable!("four were added");
        };
        LoadFigures { rate, slow }
    }

    /// The figures of one part, for people.
    pub fn table(&self, part: &str) -> String {
        let mut table = Table::new();
        table
            .load_preset(UTF8_FULL_CONDENSED)
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_header([part, "measured", "to reach", "", "bare handler", "ratio"]);
        for figure in self.figures.iter().filter(|figure| figure.part == part) {
            let to_reach = match figure.target {
                Some(Target::AtLeast(least)) => format!(">= {}", told(least, figure.unit)),
                Some(Target::AtMost(most)) => format!("<= {}", told(most, figure.unit)),
                None => String::new(),
            };
            let verdict = match figure.is_met() {
                Some(true) => "ok",
                Some(false) => "MISSED",
                None => "",
            };
            let roof = figure.roof.map(|roof| told(roof, figure.unit));
            let ratio = figure
                .roof
                .map(|roof| format!("{:.2}", figure.value / roof));
            table.add_row([
                figure.what.clone(),
                told(figure.value, figure.unit),
                to_reach,
                verdict.to_owned(),
                roof.unwrap_or_default(),
                ratio.unwrap_or_default(),
            ]);
        }
        for column in [1, 2, 4, 5] {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.to_string()
    }

    /// What was promised and not reached.
    pub fn missed(&self) -> Vec<&Figure> {
        let all = self.figures.iter();
        all.filter(|figure| figure.is_met() == Some(false))
            .collect()
    }
}

/// A figure with as many places as it deserves.
fn told(value: f64, unit: &str) -> String {
    let number = match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    };
    match unit {
        "" => number,
        unit if unit.starts_with('/') => format!("{number}{unit}"),
        unit => format!("{number} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let mut report = Report {
            machine: Machine::here(None).unwrap(),
            figures: Vec::new(),
        };
        report.add("a", "fast", 31_000.0, "/s").target = Some(Target::AtLeast(30_000.0));
        let slow = report.add("a", "slow", 12.345, "ms");
        slow.target = Some(Target::AtMost(10.0));
        slow.roof = Some(5.0);
        report.add("b", "elsewhere", 1.0, "");
        report
    }

    #[test]
    fn what_was_promised_and_not_reached_is_named() {
        let report = report();
        let missed: Vec<&str> = report
            .missed()
            .iter()
            .map(|figure| figure.what.as_str())
            .collect();
        assert_eq!(missed, ["slow"]);
        let table = report.table("a");
        for word in ["31000/s", ">= 30000/s", "12.3 ms", "MISSED", "2.47"] {
            assert!(table.contains(word), "{word} is not in\n{table}");
        }
        assert!(!table.contains("elsewhere"), "{table}");
    }

    #[test]
    fn programs_read_it_too() {
        let told = serde_json::to_value(report()).unwrap();
        assert_eq!(told["figures"][0]["target"]["at_least"], 30_000.0);
        assert_eq!(told["figures"][2]["roof"], serde_json::Value::Null);
        assert!(told["machine"]["cores"].as_u64().unwrap() > 0);
        let sqlite = told["machine"]["sqlite"].as_str().unwrap();
        assert!(sqlite.starts_with("3."), "{sqlite}");
    }
}
