//! Statistics as text, in the format of OpenMetrics 1.0.

use crate::telemetry::families::{Family, FamilyKind, Labels, ROUTEES_MAX, Sink, Value, show};
use crate::telemetry::histogram::{DepthHistogram, Histogram};
use crate::telemetry::stats::Stats;
use std::fmt::{self, Write};
use std::time::Duration;

/// The upper ends of the buckets of times: powers of 4 from 1.024 µs to 68.7 s, in powers of 2 of nanoseconds. Our own
/// buckets end there too, so the counts are exact.
const TIME_POWERS: std::ops::RangeInclusive<u32> = 10..=36;

/// The upper ends of the buckets of numbers of messages: 1 less than a power of 4, where our own buckets end.
const DEPTH_POWERS: std::ops::RangeInclusive<u32> = 1..=10;

impl Stats {
    /// The content type of [`write_openmetrics`](Self::write_openmetrics), for the header of an HTTP response.
    pub const OPENMETRICS_CONTENT_TYPE: &'static str =
        "application/openmetrics-text; version=1.0.0; charset=utf-8";

    /// The number of routees, in all routers together, that have samples of their own in the text. A router whose
    /// routees do not fit behind those of the routers before has samples of the router alone.
    pub const OPENMETRICS_ROUTEES_MAX: usize = ROUTEES_MAX;

    /// Writes the statistics as text in the format of [OpenMetrics] 1.0, which Prometheus reads. The
    /// [guide](crate::guide::telemetry) has the names.
    ///
    /// Times are in seconds. The buckets of times end at powers of 4 from 1.024 µs. The sum of a histogram is an
    /// estimate: each sample counts as the middle of its bucket, so a mean is right within an eighth. A class without samples
    /// has no histogram. Routers beyond the first 1000, and routees beyond the first
    /// [1000](Self::OPENMETRICS_ROUTEES_MAX), have no samples.
    ///
    /// The text is about a single system. Two of them cannot stand behind each other in the same page.
    ///
    /// ```
    /// use pointsman::prelude::*;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("shop").build()?;
    /// let mut page = String::new();
    /// system.stats().write_openmetrics(&mut page)?;
    /// assert!(page.contains("pointsman_messages_total{outcome=\"handled\"} "));
    /// assert!(page.ends_with("# EOF\n"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As `out` says; a `String` takes all.
    ///
    /// [OpenMetrics]: https://prometheus.io/docs/specs/om/open_metrics_spec/
    pub fn write_openmetrics(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        let mut page = Page { out, family: "" };
        show(self, &mut page)?;
        page.out.write_str("# EOF\n")
    }
}

/// The text that is being written.
struct Page<'a> {
    out: &'a mut dyn fmt::Write,
    /// The name of the last family.
    family: &'static str,
}

impl Sink for Page<'_> {
    fn sample(&mut self, family: &Family, labels: &Labels<'_>, value: Value<'_>) -> fmt::Result {
        if self.family != family.name {
            self.family = family.name;
            self.head(family)?;
        }
        match value {
            Value::Count(count) => {
                self.line(family, ending(family.kind), labels, None, |out| write!(out, "{count}"))
            }
            Value::Time(time) => {
                self.line(family, ending(family.kind), labels, None, |out| seconds(out, time))
            }
            Value::Times(times) => self.times(family, labels, times),
            Value::Depths(depths) => self.depths(family, labels, depths),
        }
    }
}

/// Returns what the name of a sample has behind that of its family.
fn ending(kind: FamilyKind) -> &'static str {
    match kind {
        FamilyKind::Counter => "_total",
        FamilyKind::Info => "_info",
        FamilyKind::Gauge | FamilyKind::Histogram => "",
    }
}

impl Page<'_> {
    fn head(&mut self, family: &Family) -> fmt::Result {
        let Family { name, kind, unit, help } = family;
        let kind = match kind {
            FamilyKind::Counter => "counter",
            FamilyKind::Gauge => "gauge",
            FamilyKind::Histogram => "histogram",
            FamilyKind::Info => "info",
        };
        writeln!(self.out, "# TYPE {name} {kind}")?;
        if !unit.is_empty() {
            writeln!(self.out, "# UNIT {name} {unit}")?;
        }
        writeln!(self.out, "# HELP {name} {help}")
    }

    /// Writes a line. `bound` is the upper end of a bucket.
    fn line(
        &mut self,
        family: &Family,
        ending: &str,
        labels: &Labels<'_>,
        bound: Option<&str>,
        value: impl FnOnce(&mut dyn Write) -> fmt::Result,
    ) -> fmt::Result {
        let out = &mut *self.out;
        write!(out, "{}{ending}", family.name)?;
        let mut before = '{';
        for (name, text) in labels.iter().copied().chain(bound.map(|bound| ("le", bound))) {
            write!(out, "{before}{name}=\"")?;
            escaped(out, text)?;
            out.write_char('"')?;
            before = ',';
        }
        if before == ',' {
            out.write_char('}')?;
        }
        out.write_char(' ')?;
        value(out)?;
        out.write_char('\n')
    }

    /// Writes the buckets of a histogram: the upper ends, and the samples in each that lie in no bucket before. Then the
    /// number of samples and their sum.
    fn buckets(
        &mut self,
        family: &Family,
        labels: &Labels<'_>,
        buckets: impl Iterator<Item = (String, u64)>,
        count: u64,
        sum: impl FnOnce(&mut dyn Write) -> fmt::Result,
    ) -> fmt::Result {
        for (bound, below) in buckets.chain([("+Inf".to_owned(), count)]) {
            self.line(family, "_bucket", labels, Some(&bound), |out| write!(out, "{below}"))?;
        }
        self.line(family, "_count", labels, None, |out| write!(out, "{count}"))?;
        self.line(family, "_sum", labels, None, sum)
    }

    fn times(&mut self, family: &Family, labels: &Labels<'_>, times: &Histogram) -> fmt::Result {
        let buckets = TIME_POWERS.step_by(2).map(|power| {
            let end = Duration::from_nanos(1 << power);
            let mut bound = String::new();
            let _ = seconds(&mut bound, end);
            (bound, times.buckets().take_while(|(bucket, _)| *bucket <= end).map(|(_, count)| count).sum())
        });
        let total = estimate(times.buckets().map(|(end, count)| (end.as_nanos(), count)), 0);
        // Half nanoseconds are left out.
        let total = Duration::from_nanos(u64::try_from(total / 2).unwrap_or(u64::MAX));
        self.buckets(family, labels, buckets, times.count(), |out| seconds(out, total))
    }

    fn depths(&mut self, family: &Family, labels: &Labels<'_>, depths: &DepthHistogram) -> fmt::Result {
        let ends = std::iter::once(1).chain(DEPTH_POWERS.map(|power| 4_u64.pow(power) - 1));
        let buckets = ends.map(|end| {
            let below =
                depths.buckets().take_while(|(bucket, _)| *bucket <= end).map(|(_, count)| count).sum();
            (format!("{end}.0"), below)
        });
        let total = estimate(depths.buckets().map(|(end, count)| (u128::from(end), count)), 1);
        self.buckets(family, labels, buckets, depths.count(), |out| {
            write!(out, "{}.{}", total / 2, total % 2 * 5)
        })
    }
}

/// Returns twice the sum of the samples, each taken for the middle of its bucket. A bucket begins `step` behind the end of
/// the bucket before.
fn estimate(buckets: impl Iterator<Item = (u128, u64)>, step: u128) -> u128 {
    let (mut begin, mut total) = (step, 0);
    for (end, count) in buckets {
        total += (begin + end) * u128::from(count);
        begin = end + step;
    }
    total
}

/// Writes a time in seconds, exactly, with at least one digit behind the point.
fn seconds(out: &mut dyn Write, time: Duration) -> fmt::Result {
    let digits = format!("{:09}", time.subsec_nanos());
    let digits = digits.trim_end_matches('0');
    write!(out, "{}.{}", time.as_secs(), if digits.is_empty() { "0" } else { digits })
}

/// Writes the value of a label.
fn escaped(out: &mut dyn Write, text: &str) -> fmt::Result {
    for character in text.chars() {
        match character {
            '\\' => out.write_str("\\\\")?,
            '"' => out.write_str("\\\"")?,
            '\n' => out.write_str("\\n")?,
            other => out.write_char(other)?,
        }
    }
    Ok(())
}

#[cfg(all(test, not(any(pointsman_loom, pointsman_shuttle))))]
mod tests {
    use super::*;
    use crate::core::actor_ref::RecipientLoad;
    use crate::core::dead_letter::DeadLetterReason;
    use crate::core::ledger::Ledger;
    use crate::core::lifecycle::{ActorEvent, Stuck};
    use crate::dispatch::dispatcher::DispatcherKind;
    use crate::measure::buckets::Buckets;
    use crate::path::actor_path::ActorPath;
    use crate::telemetry::link_stats::{LinkCounts, LinkStats, NodeStats};
    use crate::telemetry::router_stats::{RouteeStats, RouterStats};
    use crate::telemetry::stats::{ClassStats, DispatcherStats, WorkerStats};

    fn path(names: &[&str]) -> ActorPath {
        ActorPath::from_names(names.iter().map(|name| (*name).into()))
    }

    fn times(each: &[u64]) -> Histogram {
        let buckets = Buckets::default();
        each.iter().for_each(|time| buckets.count(*time, false));
        let mut histogram = Histogram::default();
        histogram.add(&buckets);
        histogram
    }

    fn routee(identity: &str, uid: u32, handled: u64, load: RecipientLoad) -> RouteeStats {
        RouteeStats { identity: identity.to_owned(), uid, load, handled }
    }

    fn router(name: &str, routees: Vec<RouteeStats>) -> RouterStats {
        RouterStats {
            path: path(&["user", name]),
            logic: "round-robin".to_owned(),
            version: 3,
            routees,
            refused: 7,
            no_routee: 2,
            attempts: 0,
            late: 0,
        }
    }

    fn stats() -> Stats {
        let mut depth = DepthHistogram::default();
        let depths = Buckets::default();
        [1, 1, 3, 4, 16].into_iter().for_each(|count| depths.count_messages(count, false));
        depth.add(&depths);
        let classes = vec![
            ClassStats {
                name: "/user/workers".to_owned(),
                actors: 2,
                handled: 90,
                queued: 5,
                queued_max: 4,
                failures: 1,
                restarts: 1,
                wait: times(&[500, 1023, 1024, 5_000_000_000, u64::MAX]),
                depth,
                ..ClassStats::default()
            },
            ClassStats {
                name: "a \"class\" of C:\\\nhostile".to_owned(),
                actors: 1,
                ..ClassStats::default()
            },
        ];
        let worker = |thread: &str, turns| WorkerStats {
            thread: thread.to_owned(),
            turns,
            messages: 2 * turns,
            parks: 3,
            steals: 1,
            searching: Duration::from_micros(1500),
            busy: Duration::from_millis(2500),
            running: None,
        };
        let (a, b) = ("/user/workers/a", "/user/workers/b");
        Stats {
            system: "shop".to_owned(),
            sequence: 1,
            at: Duration::from_secs(3),
            ledger: Ledger { sent: 100, handled: 90, dead_lettered: 5, queued: 5, ..Ledger::default() },
            dead_letters: vec![(DeadLetterReason::NoRoutee, 2), (DeadLetterReason::Stopped, 3)],
            living: 7,
            created: 8,
            ended: 1,
            failures: 1,
            restarts: 1,
            classes,
            routers: vec![
                // The routee `a` is in the table twice, and `b` has two incarnations.
                router(
                    "workers",
                    vec![
                        routee(a, 5, 40, RecipientLoad::Busy { queued: 4 }),
                        routee(a, 5, 40, RecipientLoad::Busy { queued: 4 }),
                        routee(b, 6, 30, RecipientLoad::Idle),
                        routee(b, 7, 20, RecipientLoad::Closed),
                        routee("a function", 0, 0, RecipientLoad::Unknown),
                    ],
                ),
            ],
            dispatchers: vec![DispatcherStats {
                name: "default".to_owned(),
                kind: DispatcherKind::WorkStealing,
                workers: vec![worker("one", 10), worker("two", 20), worker("two", 5)],
            }],
            stuck_reports: 2,
            stuck: vec![Stuck {
                actor: ActorEvent { path: path(&["user", "slow"]), uid: 9, class: "Slow".to_owned() },
                message_type: "u64",
                thread: "one".to_owned(),
                since: Duration::ZERO,
                lasted: Duration::from_millis(2250),
            }],
            node: None,
        }
    }

    fn text(stats: &Stats) -> String {
        let mut page = String::new();
        stats.write_openmetrics(&mut page).expect("a string takes all");
        page
    }

    #[test]
    fn the_page_is_the_golden_one() {
        let page = text(&stats());
        assert!(page == include_str!("openmetrics_golden.txt"), "the page is now:\n{page}");
    }

    #[test]
    fn a_system_with_a_node_shows_its_links_behind_all_else() {
        let mut with_node = stats();
        with_node.ledger.queued += 2;
        let link = |uid: &str, counts| LinkStats {
            node: "n2".to_owned(),
            uid: uid.to_owned(),
            state: "up",
            queued: 3,
            in_doubt: 1,
            choked: 0,
            counts,
            refused: vec![(DeadLetterReason::Full, 4), (DeadLetterReason::NotAllowed, 1)],
        };
        let counts = LinkCounts { shipped: 9, confirmed: 7, lost: 1, received: 8, ..LinkCounts::default() };
        let links = vec![link("7", counts), link("18446744073709551615", LinkCounts::default())];
        with_node.node = Some(NodeStats { links });
        let (without, page) = (text(&stats()), text(&with_node));
        let shown = page.strip_prefix(without.trim_end_matches("# EOF\n")).expect("the rest is the same");
        assert!(shown == include_str!("links_golden.txt"), "the links are now:\n{shown}");
        let since = with_node.since(&with_node);
        let links = &since.node.as_ref().expect("it is a node").links;
        assert_eq!((links[0].counts.shipped, links[0].in_doubt, links[0].refused.len()), (0, 1, 0));
    }

    #[test]
    fn no_two_samples_have_the_same_name_and_labels() {
        let page = text(&stats());
        let mut names: Vec<&str> = page
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| line.rsplit_once(' ').expect("a name and a value").0)
            .collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn routees_beyond_the_limit_are_left_out_with_their_routers() {
        let mut stats = stats();
        let many = |count: usize| {
            (0..count).map(|at| routee(&format!("r{at}"), at as u32 + 1, 1, RecipientLoad::Idle)).collect()
        };
        stats.routers = vec![router("a", many(600)), router("b", many(401)), router("c", many(400))];
        let page = text(&stats);
        let samples = |router: &str| {
            let begin = format!("pointsman_routee_handled_total{{router=\"/user/{router}\"");
            page.lines().filter(|line| line.starts_with(&begin)).count()
        };
        assert_eq!((samples("a"), samples("b"), samples("c")), (600, 0, 400));
        assert!(page.contains("pointsman_router_routees{router=\"/user/b\"} 401\n"));
    }

    #[test]
    fn a_sink_that_refuses_ends_the_page() {
        struct Refuses;
        impl Write for Refuses {
            fn write_str(&mut self, _: &str) -> fmt::Result {
                Err(fmt::Error)
            }
        }
        assert!(stats().write_openmetrics(&mut Refuses).is_err());
    }
}
