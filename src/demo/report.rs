//! What the demo shows: progress while it runs, then the table and the numbers.
//!
//! Fed by `run`; it measures nothing itself except the memory of this process.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{ContentArrangement, Table};
use indicatif::{ProgressBar, ProgressStyle};

use super::journal::Journal;

/// Above this many nodes the table shows only what is special.
const ROWS_MAX: usize = 20;
/// The table is no wider than this, however wide the terminal is, and has this width where there is none.
const WIDTH_MAX: u16 = 120;

/// One node at the end.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) name: String,
    /// What its machine was told to do.
    pub(crate) behaviour: &'static str,
    pub(crate) is_special: bool,
    pub(crate) expected: &'static str,
    pub(crate) ended_as: String,
    /// From the request to the end of the deploy, as seen in the list.
    pub(crate) took: Option<Duration>,
    pub(crate) why: String,
    /// How often its machine started to write the image.
    pub(crate) writes: usize,
}

impl Row {
    /// Why the node ended as it did, and what is wrong with its writes.
    fn reason(&self) -> String {
        match (self.writes, self.why.is_empty()) {
            (1, _) => self.why.clone(),
            (writes, true) => format!("the image was written {writes} times instead of once"),
            (writes, false) => format!("{} (the image was written {writes} times)", self.why),
        }
    }

    /// Whether the node ended as it should: the expected state, a reason for a failure, and exactly one write.
    pub(crate) fn is_as_expected(&self) -> bool {
        let has_reason = self.expected != "deploy failed" || !self.why.is_empty();
        self.ended_as == self.expected && has_reason && self.writes == 1
    }
}

/// How far the demo is: a bar on a terminal, lines elsewhere.
pub(crate) enum Progress {
    Bar(ProgressBar),
    Lines { last: String },
}

impl Progress {
    pub(crate) fn new(nodes: usize) -> Self {
        if !std::io::stdout().is_terminal() || !std::io::stderr().is_terminal() {
            return Self::Lines {
                last: String::new(),
            };
        }
        let style = ProgressStyle::with_template(
            "{elapsed:>4} [{bar:40}] {pos}/{len} deployed or failed  {msg}",
        )
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ");
        Self::Bar(ProgressBar::new(nodes as u64).with_style(style))
    }

    /// `states`: how many nodes are in which state.
    pub(crate) fn show(&mut self, over: usize, elapsed: Duration, states: &[(String, usize)]) {
        let message = states
            .iter()
            .map(|(state, count)| format!("{count} {state}"))
            .collect::<Vec<_>>()
            .join(", ");
        match self {
            Self::Bar(bar) => {
                bar.set_position(over as u64);
                bar.set_message(message);
            }
            Self::Lines { last } => {
                if *last != message {
                    say(format_args!("{:5.1} s  {message}", elapsed.as_secs_f64()));
                    *last = message;
                }
            }
        }
    }

    pub(crate) fn end(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// Writes a line to standard output. Whoever reads it may have gone (`| head`), which is no reason to leave machines behind.
pub(crate) fn say(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// The table of nodes, and for many nodes a line per group.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut table = Table::new();
    table
        .load_preset(UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Dynamic);
    let is_narrow =
        std::io::stdout().is_terminal() && table.width().is_some_and(|width| width < WIDTH_MAX);
    if !is_narrow {
        table.set_width(WIDTH_MAX);
    }
    table.set_header(["node", "machine", "expected", "ended as", "seconds", "why"]);
    let shows_all = rows.len() <= ROWS_MAX;
    let interesting = |row: &&Row| shows_all || row.is_special || !row.is_as_expected();
    for row in rows.iter().filter(interesting).take(ROWS_MAX) {
        let took = row
            .took
            .map(|took| format!("{:.1}", took.as_secs_f64()))
            .unwrap_or_default();
        let mark = if row.is_as_expected() { "" } else { " (!)" };
        table.add_row([
            row.name.clone(),
            row.behaviour.to_owned(),
            row.expected.to_owned(),
            format!("{}{mark}", row.ended_as),
            took,
            row.reason(),
        ]);
    }
    let mut text = table.to_string();
    match rows
        .iter()
        .filter(interesting)
        .count()
        .saturating_sub(ROWS_MAX)
    {
        0 => {}
        hidden => text += &format!("\n... and {hidden} more that did not end as expected"),
    }
    if !shows_all {
        let mut groups: Vec<&'static str> = rows.iter().map(|row| row.behaviour).collect();
        groups.sort_unstable();
        groups.dedup();
        for group in groups {
            let of_group = || rows.iter().filter(|row| row.behaviour == group);
            let good = of_group().filter(|row| row.is_as_expected()).count();
            let mut took: Vec<Duration> = of_group().filter_map(|row| row.took).collect();
            let times = match (percentile(&mut took, 0.5), percentile(&mut took, 1.0)) {
                (Some(median), Some(longest)) => {
                    format!(
                        ", median {:.1} s, longest {:.1} s",
                        median.as_secs_f64(),
                        longest.as_secs_f64()
                    )
                }
                _ => String::new(),
            };
            text += &format!(
                "\n{group}: {good} of {} ended as expected{times}",
                of_group().count()
            );
        }
    }
    text
}

/// The measured numbers, a line each.
pub(crate) fn numbers(rows: &[Row], journals: &[Journal], total: Duration) -> String {
    let over = rows.iter().filter(|row| row.took.is_some()).count();
    let mut idle: Vec<Duration> = journals.iter().flat_map(Journal::idle_times).collect();
    let count = idle.len();
    let handover = match (percentile(&mut idle, 0.5), percentile(&mut idle, 0.95)) {
        (Some(median), Some(p95)) => {
            format!(
                "median {} ms, p95 {} ms ({count} measured at the agents, which don't tell when a command ends)",
                median.as_millis(),
                p95.as_millis()
            )
        }
        _ => "not measured: no command had a successor".to_owned(),
    };
    let wrong = rows.iter().filter(|row| row.writes != 1).count();
    let writes = match wrong {
        0 => "1 on each machine".to_owned(),
        wrong => format!("not exactly 1 on {wrong} of {} machines (!)", rows.len()),
    };
    let memory = peak_memory_kib().map_or("not measured on this system".to_owned(), |kib| {
        format!(
            "{:.0} MB at most, conductor and machines together",
            kib as f64 * 1024.0 / 1e6
        )
    });
    [
        (
            "total",
            format!(
                "{:.1} s for {over} deploys, {:.1} a second",
                total.as_secs_f64(),
                rate(over, total)
            ),
        ),
        ("resident memory", memory),
        ("command finished -> next one sent", handover),
        ("image writes started", writes),
        (
            "heartbeats",
            format!(
                "{} accepted",
                journals
                    .iter()
                    .map(Journal::heartbeats_accepted)
                    .sum::<usize>()
            ),
        ),
    ]
    .map(|(what, value)| format!("{what:<34} {value}"))
    .join("\n")
}

fn rate(count: usize, time: Duration) -> f64 {
    if time.is_zero() {
        0.0
    } else {
        count as f64 / time.as_secs_f64()
    }
}

/// The smallest value that is not below the given share of all values; `None` for no values. Sorts.
fn percentile(values: &mut [Duration], share: f64) -> Option<Duration> {
    values.sort_unstable();
    let rank = (share * values.len() as f64).ceil() as usize;
    values.get(rank.saturating_sub(1)).copied()
}

/// The most memory this process has had resident, where Linux tells.
fn peak_memory_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_row(number: usize) -> Row {
        Row {
            name: format!("demo-{number:04}"),
            behaviour: "healthy",
            is_special: false,
            expected: "active",
            ended_as: "active".to_owned(),
            took: Some(Duration::from_secs(2)),
            why: String::new(),
            writes: 1,
        }
    }

    #[test]
    fn a_node_is_as_expected_only_with_one_write_and_a_reason_for_its_failure() {
        assert!(a_row(1).is_as_expected());
        assert!(
            !Row {
                writes: 2,
                ..a_row(1)
            }
            .is_as_expected()
        );
        assert!(
            !Row {
                ended_as: "deploy failed".to_owned(),
                ..a_row(1)
            }
            .is_as_expected()
        );
        let failed = Row {
            expected: "deploy failed",
            ended_as: "deploy failed".to_owned(),
            ..a_row(1)
        };
        assert!(!failed.is_as_expected(), "no reason");
        assert!(
            Row {
                why: "silent".to_owned(),
                ..failed
            }
            .is_as_expected()
        );
    }

    #[test]
    fn many_nodes_are_summed_up_and_the_odd_ones_shown() {
        let mut rows: Vec<Row> = (1..=100).map(a_row).collect();
        rows[6].ended_as = "wait call-back".to_owned();
        rows[10].writes = 2;
        let text = table(&rows);
        assert!(text.contains("demo-0007") && text.contains("wait call-back (!)"));
        assert!(text.contains("demo-0011") && text.contains("2 times"));
        assert!(!text.contains("demo-0008"));
        assert!(
            text.contains("healthy: 98 of 100 ended as expected, median 2.0 s, longest 2.0 s"),
            "{text}"
        );
    }

    #[test]
    fn a_long_reason_is_wrapped_and_shown_to_its_end() {
        let mut rows: Vec<Row> = (1..=3).map(a_row).collect();
        rows[0].behaviour = "loses the reply to write_image";
        rows[1].why = format!("{}the end.", "word ".repeat(200));
        let text = table(&rows);
        assert!(text.contains("the end."), "{text}");
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(usize::from(WIDTH_MAX)), "{text}");
    }

    #[test]
    fn percentiles_are_values_that_occurred() {
        let mut values: Vec<Duration> = (1..=20).rev().map(Duration::from_millis).collect();
        assert_eq!(
            percentile(&mut values, 0.5),
            Some(Duration::from_millis(10))
        );
        assert_eq!(
            percentile(&mut values, 0.95),
            Some(Duration::from_millis(19))
        );
        assert_eq!(
            percentile(&mut values, 1.0),
            Some(Duration::from_millis(20))
        );
        assert_eq!(percentile(&mut [], 0.5), None);
    }
}
