use pointsman_macros::Message;

#[derive(Message)]
union Msg {
    number: u32,
    bytes: [u8; 4],
}

fn main() {}
