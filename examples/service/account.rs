//! An account, which the actor of its name keeps in memory.

use pointsman::prelude::*;

/// Changes the account of this name by so many cents. The reply is the balance, or the reason why it has not changed.
pub struct AccountRequest {
    pub name: String,
    pub change: i64,
}

impl Request for AccountRequest {
    type Reply = Result<u64, &'static str>;
}

#[derive(Default)]
pub struct Account {
    cents: u64,
}

impl Actor for Account {
    type Message = Call<AccountRequest>;

    fn receive(&mut self, call: Self::Message, ctx: &mut Context<Self::Message>) -> HandlerResult {
        call.answer(|request| {
            let changed = self.cents.checked_add_signed(request.change);
            self.cents = changed.ok_or("the balance would be below zero or too large")?;
            Ok(self.cents)
        });
        if self.cents == 0 {
            ctx.passivate(); // its next request makes it again
        }
        Ok(())
    }
}
