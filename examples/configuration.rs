//! A system whose settings come from a file: `examples/pointsman.toml`, which has every key there is.
//!
//! ```text
//! cargo run --features config --example configuration
//! ```
//!
//! It prints all settings, those that nobody has set included, and on which thread two actors run: the code says
//! nothing of that, the file does. It ends by itself, with status 0 if all is as the file says.

use pointsman::prelude::*;
use std::error::Error;
use std::time::Duration;

/// Says on which thread it runs.
struct Reader;

struct Where;
impl Request for Where {
    type Reply = String;
}

impl Actor for Reader {
    type Message = Call<Where>;
    fn receive(&mut self, call: Call<Where>, _: &mut Context<Call<Where>>) -> HandlerResult {
        call.answer(|Where| std::thread::current().name().unwrap_or("unnamed").to_owned());
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/pointsman.toml");
    let system = System::builder("shop").config_file(file)?.build()?;
    println!("{}", system.settings());

    let reader = system.actor("reader").spawn(|| Reader)?;
    let clerk = system.actor("clerk").spawn(|| Reader)?;
    let (reads_on, works_on) = (reader.ask(Where).wait()?, clerk.ask(Where).wait()?);
    println!("/user/reader runs on {reads_on}, /user/clerk on {works_on}");
    assert!(reads_on.starts_with("shop-blocking"), "the file sends it to the dispatcher `files`");
    assert!(works_on.starts_with("shop-default"));

    // A file that is wrong says where and why.
    let wrong = "[dispatcher.blocking]\ntype = \"blocking\"\nthreads-max = 5000\n";
    if let Err(error) = System::builder("shop").config(wrong) {
        println!("{error}");
    }

    println!("{}", system.shutdown(Duration::from_secs(5))?);
    Ok(())
}
