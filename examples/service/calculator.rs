//! A calculator: one actor of a pool with bounded mailboxes, on a dispatcher of its own.

use pointsman::prelude::*;

/// Asks for the balance after some years of interest.
pub struct Forecast {
    pub cents: u64,
    pub years: u32,
}

impl Request for Forecast {
    type Reply = u64;
}

/// Computes with interest of so many per mille.
pub struct Calculator(pub u64);

impl Actor for Calculator {
    type Message = Call<Forecast>;

    fn receive(&mut self, call: Self::Message, _: &mut Context<Self::Message>) -> HandlerResult {
        let (Forecast { mut cents, years }, reply_to) = call.into_parts();
        for year in 0..years {
            if year % 1024 == 0 && !reply_to.wanted() {
                return Ok(()); // its time is up
            }
            cents = cents.saturating_add(cents.saturating_mul(self.0) / 1000);
        }
        let _ = reply_to.send(cents); // a late answer comes back, and is counted
        Ok(())
    }
}
