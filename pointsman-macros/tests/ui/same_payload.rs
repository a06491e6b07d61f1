use pointsman_macros::Message;

struct Put;

#[derive(Message)]
enum Msg {
    Put(Put),
    Sweep,
    PutQuietly(Put),
    Names(Vec<std::string::String>),
    #[message(skip)]
    Aliases(Vec<std::string::String>),
    Paths(Vec<std::string::String>),
}

fn main() {}
