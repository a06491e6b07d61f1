//! The program `pointsman-top`; see the README.

use clap::Parser;
use pointsman_top::app::{App, Feed};
use pointsman_top::client::{Client, Limits};
use pointsman_top::demo::Demo;
use pointsman_top::filter::Filter;
use pointsman_top::model::model::Model;
use pointsman_top::options::Options;
use pointsman_top::reader::{Reader, SharedQuery};
use pointsman_top::recording::{self, Player, Recorder};
use pointsman_top::screen::Situation;
use pointsman_top::terminal::{self, End};
use pointsman_top::view::{Page, View};
use pointsman_top::{format, printed};
use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::thread;
use std::time::Instant;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(End::Quit) => ExitCode::SUCCESS,
        Ok(End::Signal(signal)) => {
            // The parent sees which signal has ended the program.
            #[cfg(unix)]
            let _ = signal_hook::low_level::emulate_default_handler(signal);
            ExitCode::from(128_u8.saturating_add(signal as u8))
        }
        Err(error) => {
            eprintln!("pointsman-top: {}", format::plain(&error.to_string()));
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<End, Box<dyn Error>> {
    let is_printed = options.once || options.picture.is_some();
    let has_terminal = io::stdout().is_terminal() && io::stdin().is_terminal();
    if !is_printed && !has_terminal {
        return Err(
            "standard input and output are no terminal: use --once for text, or --picture for an SVG".into(),
        );
    }
    let view = View {
        page: options.picture.or(options.page).unwrap_or_default(),
        sort: options.sort,
        filter: Filter::new(&options.filter),
        ..View::default()
    };
    let has_colors = !options.no_color && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    match &options.replay {
        Some(path) => {
            let player = Player::new(recording::load(path)?, options.speed);
            let source = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
            replay(options, view, player, source, has_colors)
        }
        None => watch(options, view, has_colors),
    }
}

/// Shows a recording.
fn replay(
    options: &Options,
    view: View,
    mut player: Player,
    source: String,
    has_colors: bool,
) -> Result<End, Box<dyn Error>> {
    let mut situation = Situation {
        source,
        now: player.now(),
        interval: options.interval.as_secs_f64(),
        replay: Some(player.replay()),
    };
    if !options.once && options.picture.is_none() {
        let feed = Feed::Recording(player, Instant::now());
        return Ok(terminal::run(&mut App::new(feed, view, situation, options.limit, has_colors))?);
    }
    let mut model = Model::default();
    let until = options.until.map_or(f64::INFINITY, |until| until.as_secs_f64());
    player.advance(until / options.speed).iter().for_each(|reading| model.take(reading.clone()));
    situation.now = player.now();
    situation.replay = Some(player.replay());
    print(options, &model, &view, &situation, has_colors)?;
    Ok(End::Quit)
}

/// Shows a server, or a system of this process.
fn watch(options: &Options, view: View, has_colors: bool) -> Result<End, Box<dyn Error>> {
    let demo = if options.demo { Some(Demo::start(options.address.as_ref())?) } else { None };
    let address = match (&demo, &options.address) {
        (Some(demo), _) => demo.address().clone(),
        (None, Some(address)) => address.clone(),
        (None, None) => return Err("there is no address".into()),
    };
    let recorder = match &options.record {
        Some(path) => Some(Recorder::create(path).map_err(|error| {
            format!("{} cannot be created: {error}: name a file that is not there", path.display())
        })?),
        None => None,
    };
    let mut situation = Situation {
        source: address.to_string(),
        now: 0.0,
        interval: options.interval.as_secs_f64(),
        replay: None,
    };
    let query = SharedQuery::new(view.query(options.limit));
    let mut reader = Reader::new(Client::new(address, Limits::default()), query.clone(), recorder);
    if !options.once && options.picture.is_none() {
        let began = reader.began();
        let feed = Feed::Server { reports: reader.run(options.interval), query, began };
        return Ok(terminal::run(&mut App::new(feed, view, situation, options.limit, has_colors))?);
    }
    let mut model = Model::default();
    for number in 0..options.readings {
        if number > 0 {
            thread::sleep(options.interval);
        }
        let (reading, fault) = reader.read();
        if let Some(fault) = fault {
            return Err(format!("the recording has ended: {fault}").into());
        }
        situation.now = reading.at;
        model.take(reading);
    }
    if let (None, Some(fault)) = (model.snapshot(), model.fault()) {
        return Err(format!("{}: {}", situation.source, fault.text).into());
    }
    print(options, &model, &view, &situation, has_colors)?;
    Ok(End::Quit)
}

/// Prints what the options ask for.
fn print(
    options: &Options,
    model: &Model,
    view: &View,
    situation: &Situation,
    has_colors: bool,
) -> Result<(), Box<dyn Error>> {
    let printed = if options.picture.is_some() {
        printed::picture(model, view, situation, options.size, has_colors)
    } else {
        let pages = options.page.map_or_else(|| Page::ALL.to_vec(), |page| vec![page]);
        printed::text(model, view, situation, &pages, options.size)
    };
    match io::stdout().write_all(printed.as_bytes()) {
        // The reader has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}
