//! A program of axum beside the engine: an HTTP client on one side, actors, a stack of tower and a stream on the other.

use crate::support::*;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use pointsman::actor::StreamEvent;
use pointsman::ask::{ActorService, NoReplyCause};
use pointsman::prelude::*;
use pointsman::shutdown::Phase;
use pointsman::{AskError, DeadLetterReason};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tower::load_shed::LoadShed;
use tower::{Service, ServiceBuilder, ServiceExt};

struct Add(u64);
impl Request for Add {
    type Reply = u64;
}
struct Sum;
impl Request for Sum {
    type Reply = Result<u64, String>;
}
/// Keeps the actor until the test lets go.
struct Stall(mpsc::Receiver<()>);
impl Request for Stall {
    type Reply = ();
}

enum Msg {
    Add(Call<Add>),
    Sum(Call<Sum>),
    Stall(Call<Stall>),
    Event(StreamEvent<u64>),
}

macro_rules! from_calls {
    ($($name:ident),*) => {$(
        impl From<Call<$name>> for Msg {
            fn from(call: Call<$name>) -> Self {
                Self::$name(call)
            }
        }
        impl pointsman::topology::Wraps<Call<$name>> for Msg {
            fn give_back(self) -> Result<Call<$name>, Self> {
                match self {
                    Self::$name(call) => Ok(call),
                    other => Err(other),
                }
            }
        }
    )*};
}
from_calls!(Add, Sum, Stall);

/// Adds up what it is told, and what the stream brings.
struct Adder {
    numbers: Option<ReceiverStream<u64>>,
    sum: u64,
    is_complete: bool,
}

impl Actor for Adder {
    type Message = Msg;
    fn started(&mut self, ctx: &mut Context<Msg>) -> HandlerResult {
        if let Some(numbers) = self.numbers.take() {
            ctx.attach(numbers, Msg::Event);
        }
        Ok(())
    }
    fn receive(&mut self, message: Msg, ctx: &mut Context<Msg>) -> HandlerResult {
        match message {
            Msg::Add(call) => {
                if call.request.0 == 13 {
                    return call.try_answer(|_| Err(Failure::msg("as told")));
                }
                self.sum += call.request.0;
                let sum = self.sum;
                call.answer(|_| sum);
            }
            Msg::Sum(call) => {
                let sum = if self.is_complete { Ok(self.sum) } else { Err("not complete".to_owned()) };
                call.answer(|_| sum);
            }
            Msg::Stall(call) => {
                let (Stall(mut until), reply_to) = call.into_parts();
                ctx.hold(async move { until.recv().await }, move |_: &mut Self, _, _| {
                    let _ = reply_to.send(());
                    Ok(())
                });
            }
            Msg::Event(StreamEvent::Item(number)) => self.sum += number,
            Msg::Event(_) => self.is_complete = true,
        }
        Ok(())
    }
}

#[derive(Clone)]
struct App {
    adder: ActorRef<Msg>,
    shedding: LoadShed<ActorService<Msg>>,
}

async fn sum(State(app): State<App>) -> Result<String, (StatusCode, String)> {
    let outcome = app.adder.ask(Sum).within(LONG).flat().await;
    outcome.map(|sum| sum.to_string()).map_err(|error| (StatusCode::CONFLICT, error.to_string()))
}

async fn add(State(mut app): State<App>, Path(number): Path<u64>) -> Result<String, StatusCode> {
    let ready = ServiceExt::<Add>::ready(&mut app.shedding).await.map_err(|_| StatusCode::BAD_GATEWAY)?;
    match ready.call(Add(number)).await {
        Ok(sum) => Ok(sum.to_string()),
        Err(error) if error.is::<tower::load_shed::error::Overloaded>() => {
            Err(StatusCode::SERVICE_UNAVAILABLE)
        }
        Err(error) => match error.downcast_ref::<AskError>() {
            Some(AskError::NoReply { cause: NoReplyCause::Failed, .. }) => {
                Err(StatusCode::INTERNAL_SERVER_ERROR)
            }
            _ => Err(StatusCode::BAD_GATEWAY),
        },
    }
}

/// A request by hyper's client.
async fn request(address: SocketAddr, method: &str, path: &str) -> (u16, String) {
    let stream = TcpStream::connect(address).await.expect("the service listens");
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("a handshake");
    tokio::spawn(connection);
    let request = hyper::Request::builder().method(method).uri(path).header("host", "adder");
    let request = request.body(Empty::<Bytes>::new()).expect("a sound request");
    let response = sender.send_request(request).await.expect("an answer");
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    (status, String::from_utf8(body.to_vec()).expect("text"))
}

#[test]
fn a_service_of_axum_asks_actors_sheds_load_and_ends_in_phases() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let tokio = runtime.handle().clone();
    let system = System::builder("adder")
        .polls_within(move |poll| {
            let _entered = tokio.enter();
            poll();
        })
        .supervision(Strategy::resume())
        .build()
        .unwrap();
    let (numbers, stream) = mpsc::channel(2);
    let mut stream = Some(ReceiverStream::new(stream));
    let adder = system
        .actor("adder")
        .mailbox(Mailbox::bounded(1))
        .spawn(move || Adder { numbers: stream.take(), sum: 0, is_complete: false })
        .unwrap();
    let shedding = ServiceBuilder::new().load_shed().service(adder.service());
    let app = axum::Router::new()
        .route("/sum", get(sum))
        .route("/add/{number}", post(add))
        .with_state(App { adder: adder.clone(), shedding });
    let shutdown = system.coordinated_shutdown();
    let report = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let server = tokio::spawn(async move {
            let until = async { stopped.await.unwrap_or_default() };
            axum::serve(listener, app).with_graceful_shutdown(until).await
        });
        let unbind = move || async move {
            let _ = stop.send(());
            Ok(server.await??)
        };
        shutdown.add_future(Phase::SERVICE_UNBIND, "http", unbind).unwrap();

        assert_eq!(request(address, "POST", "/add/5").await, (200, "5".to_owned()));
        assert_eq!(request(address, "GET", "/sum").await, (409, "not complete".to_owned()));
        for number in 0..20 {
            numbers.send(number).await.expect("the actor listens");
        }
        drop(numbers);
        loop {
            match request(address, "GET", "/sum").await {
                (200, sum) => break assert_eq!(sum, (5 + (0..20).sum::<u64>()).to_string()),
                (status, _) => assert_eq!(status, 409),
            }
        }
        // A handler that fails is told from all else.
        assert_eq!(request(address, "POST", "/add/13").await.0, 500);
        // A full mailbox: the stack sheds.
        let (let_go, until) = mpsc::channel(1);
        let stalled = adder.ask(Stall(until));
        while adder.load() != (pointsman::actor::RecipientLoad::Busy { queued: 0 }) {
            tokio::task::yield_now().await;
        }
        let queued = adder.ask(Add(1));
        assert_eq!(request(address, "POST", "/add/2").await.0, 503);
        match adder.ask(Add(3)).await {
            Err(error @ AskError::Undeliverable { reason: DeadLetterReason::Full, .. }) => {
                assert!(error.is_full())
            }
            other => panic!("{other:?}"),
        }
        let Err(refused) = adder.try_ask(Add(4)) else { panic!("it is full") };
        assert!(refused.error.is_full());
        assert_eq!(refused.message.0, 4, "the request came back without a clone");
        // A service waits for room.
        let mut service = adder.service();
        let waiting = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let_go.send(()).await.expect("the actor holds");
        });
        let ready = ServiceExt::<Add>::ready(&mut service).await.map(|service| service.call(Add(7)));
        waiting.await.expect("it does not panic");
        let answer = ready.expect("the actor lives").await;
        stalled.await.expect("it was let go");
        assert_eq!((queued.await, answer), (Ok(196), Ok(203)));
        shutdown.run("the end of the test").await.expect("all phases are done")
    });
    assert_eq!(report.ledger.balance(), 0, "{}", report.ledger);
    assert_eq!(shutdown.wait().expect("the run is over").reason, report.reason);
    let gone = runtime.block_on(async { ServiceExt::<Add>::ready(&mut adder.clone()).await.map(drop) });
    assert!(
        matches!(gone, Err(AskError::Undeliverable { reason: DeadLetterReason::Stopped, .. })),
        "{gone:?}"
    );
    system.shutdown(LONG).unwrap();
}
