//! The options of the program.

use crate::server_address::ServerAddress;
use crate::view::{Page, Sort};
use clap::Parser;
use std::path::PathBuf;
use std::time::Duration;

/// Shows what a running system of pointsman does: its actors, routers, times, threads and books.
///
/// The system serves its statistics by `serve_stats` (feature `console`). Press ? for the keys.
#[derive(Debug, Parser)]
#[command(name = "pointsman-top", version)]
pub struct Options {
    /// The address of the server: host:port, or unix:PATH. With --demo, the address at which the demo serves
    #[arg(required_unless_present_any = ["replay", "demo"], conflicts_with = "replay")]
    pub address: Option<ServerAddress>,
    /// The time between two readings
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub interval: Duration,
    /// Print the pages as text, and end
    #[arg(long)]
    pub once: bool,
    /// Print a page as an SVG, and end
    #[arg(long, value_name = "PAGE", conflicts_with_all = ["once", "page"])]
    pub picture: Option<Page>,
    /// The page to begin with; with --once the only page
    #[arg(long)]
    pub page: Option<Page>,
    /// The order of the rows
    #[arg(long, default_value = "tree")]
    pub sort: Sort,
    /// Show what has this in its path or name, or matches a pattern such as '/user/pool/*'
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub filter: String,
    /// The most actors to ask the server for, up to 10000
    #[arg(long, value_name = "COUNT", default_value_t = 500)]
    pub limit: usize,
    /// Record all readings in a new file
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub record: Option<PathBuf>,
    /// Show a recording
    #[arg(long, value_name = "FILE")]
    pub replay: Option<PathBuf>,
    /// Seconds of the recording to show in a second
    #[arg(long, default_value_t = 1.0, requires = "replay", conflicts_with_all = ["address", "demo"], value_parser = speed)]
    pub speed: f64,
    /// With --once or --picture: show the recording as it was at this time
    #[arg(long, value_name = "TIME", requires = "replay", conflicts_with_all = ["address", "demo"], value_parser = humantime::parse_duration)]
    pub until: Option<Duration>,
    /// With --once or --picture: read the server so often before
    #[arg(long, value_name = "COUNT", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    pub readings: u32,
    /// With --once or --picture: the columns and rows; by default 140 columns, and as many rows as there are
    #[arg(long, value_name = "COLUMNSxROWS", value_parser = size)]
    pub size: Option<(u16, u16)>,
    /// Run a system in this process, and show it
    #[arg(long, conflicts_with = "replay")]
    pub demo: bool,
    /// Show no colours; the variable NO_COLOR says the same
    #[arg(long)]
    pub no_color: bool,
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    let allowed = Duration::from_millis(20)..=Duration::from_secs(3600);
    if allowed.contains(&interval) { Ok(interval) } else { Err("use 20ms to 1h".to_owned()) }
}

fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse::<f64>().map_err(|error| error.to_string())?;
    if speed > 0.0 && speed <= 1000.0 { Ok(speed) } else { Err("use more than 0, up to 1000".to_owned()) }
}

fn size(text: &str) -> Result<(u16, u16), String> {
    let read = |text: &str| text.parse::<u16>().ok().filter(|count| (1..=1000).contains(count));
    let size = text.split_once('x').and_then(|(columns, rows)| read(columns).zip(read(rows)));
    size.ok_or_else(|| "write it as 140x45, each from 1 to 1000".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(line: &str) -> Result<Options, clap::Error> {
        Options::try_parse_from(line.split_whitespace())
    }

    #[test]
    fn the_options_fit_together() {
        Options::command().debug_assert();
        for good in [
            "top 127.0.0.1:9464",
            "top unix:/run/shop --once --page latency --interval 250ms",
            "top --demo --record file",
            "top 127.0.0.1:0 --demo",
            "top --replay file --picture routers --until 12s --size 120x40",
        ] {
            assert!(parse(good).is_ok(), "{good}");
        }
        for bad in [
            "top",
            "top nowhere",
            "top 127.0.0.1:1 --replay file",
            "top --replay a --record b",
            "top --demo --replay a",
            "top 127.0.0.1:1 --once --picture tree",
            "top 127.0.0.1:1 --until 3s",
            "top 127.0.0.1:1 --interval 1ms",
            "top --replay a --speed 0",
            "top --replay a --speed NaN",
            "top --demo --once --size 0x4",
            "top --demo --once --readings 0",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
