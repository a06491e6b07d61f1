//! `soak --seed S --seconds N --profile P`: runs storms for so long, and fails at the first fault. See the library's
//! first lines.
//!
//! | option | |
//! |---|---|
//! | `--seed S` | all decisions come from it; 1 unless said otherwise |
//! | `--seconds N` | how long; 60 unless said otherwise |
//! | `--messages N` | ends as soon as so many messages are accounted for |
//! | `--profile P` | `everyday`, `heavy`, `mixed`, `topologies`, or the name of a storm |
//! | `--scale little` | fewer actors and shorter bouts, for builds that run slowly |
//! | `--round R` | begins with this round: what a fault names |

use soak::books::{Books, Count};
use soak::parcel::AsTold;
use soak::profile::Profile;
use soak::scene::Scale;
use soak::{heap, machine, memory::Memory};
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[global_allocator]
static HEAP: heap::Counted = heap::Counted;

struct Options {
    seed: u64,
    seconds: u64,
    messages: u64,
    profile: Profile,
    profile_name: String,
    round: u64,
    scale: Scale,
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        seed: 1,
        seconds: 60,
        messages: u64::MAX,
        profile: Profile::Everyday,
        profile_name: "everyday".to_owned(),
        round: 0,
        scale: Scale::FULL,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} has no value: give one"))?;
        let number = || value.parse::<u64>().map_err(|error| format!("{name} {value}: {error}"));
        match name.as_str() {
            "--seed" => options.seed = number()?,
            "--seconds" => options.seconds = number()?,
            "--messages" => options.messages = number()?,
            "--round" => options.round = number()?,
            "--profile" => {
                options.profile = Profile::named(&value).ok_or_else(|| {
                    format!("no profile {value}: must be one of {}", Profile::names().join(", "))
                })?;
                options.profile_name = value;
            }
            "--scale" => {
                options.scale = match value.as_str() {
                    "full" => Scale::FULL,
                    "little" => Scale::LITTLE,
                    _ => return Err(format!("no scale {value}: must be full or little")),
                }
            }
            _ => {
                let known = "--seed, --seconds, --messages, --profile, --round, --scale";
                return Err(format!("no option {name}: must be one of {known}"));
            }
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    // What is told to panic says nothing; all else does.
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !info.payload().is::<AsTold>() {
            usual(info);
        }
    }));
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    let Options { seed, seconds, messages, profile, ref profile_name, round: first, scale } = *options;
    let (began, books) = (Instant::now(), Books::open(scale.slots));
    let mut memory = Memory::default();
    let mut number = first;
    println!("soak: profile {profile_name}, seed {seed}, at most {seconds} s");
    while began.elapsed() < Duration::from_secs(seconds) && (books.ended() as u64) < messages {
        let round = profile.round(seed, number, scale);
        let (round_began, before) = (Instant::now(), books.ended());
        let names: Vec<_> = round.storms.iter().map(|storm| storm.name).collect();
        let names = names.join("+");
        round.run(books).map_err(|error| format!("round {number} ({names}) could not begin: {error}"))?;
        if let Some(faults) = books.faults() {
            return Err(format!(
                "FAILED {:.1} s after the start, in round {number} ({names}): {faults}\nagain: soak --seed {seed} \
                 --profile {profile_name} --round {number}",
                began.elapsed().as_secs_f64()
            ));
        }
        machine::give_back();
        let (live, resident) = (heap::live(), machine::resident());
        memory.note(live, if scale.judges_resident { resident } else { 0 });
        let (done, took) = ((books.ended() - before) as f64, round_began.elapsed().as_secs_f64());
        println!(
            "{:7.1} s  round {number:4}  {:7.3} M messages  {:6.3} M/s  resident {:6.1} MB  allocated {:6.2} MB  {names}",
            began.elapsed().as_secs_f64(),
            done / 1e6,
            done / 1e6 / took,
            resident as f64 / 1e6,
            live as f64 / 1e6,
        );
        number += 1;
    }
    let total = |count| books.total(count);
    let (seconds, ended) = (began.elapsed().as_secs_f64(), books.ended());
    println!(
        "{ended} messages in {seconds:.0} s ({:.3} M/s), {} rounds: sent {} + copied {} = handled {} + dead {} + \
         dropped {} + handed back {}, balance {}; asked {} = answered {} + failed {}; ticks {}; states of actors {} \
         made, {} dropped",
        ended as f64 / 1e6 / seconds,
        number - first,
        total(Count::Sent),
        total(Count::Copied),
        total(Count::Handled),
        total(Count::Dead),
        total(Count::Dropped),
        total(Count::Back),
        books.under_way(),
        total(Count::Asked),
        total(Count::Answered),
        total(Count::Failed),
        total(Count::Ticked),
        total(Count::Born),
        total(Count::Buried),
    );
    // Mixes of storms need caches that a storm alone does not.
    println!("{}", memory.judge(profile.rounds_alone().saturating_sub(first) as usize)?);
    Ok(())
}
