//! A web service: handlers of axum ask actors, and a stack of tower stands in front of one of them.
//!
//! The actors run on the engine's own threads, and axum on tokio's. A reference is all that a handler needs: an ask is a
//! future under any executor. The service asks itself a few questions, and ends in phases.
//!
//!     cargo run --example axum --features tower

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use pointsman::actor::ActorRef;
use pointsman::ask::ActorService;
use pointsman::prelude::{Actor, AskError, Call, Context, HandlerResult, Mailbox, Message, Request, System};
use pointsman::shutdown::Phase;
use std::collections::HashMap;
use std::error::Error;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower::limit::ConcurrencyLimit;
use tower::load_shed::LoadShed;
use tower::timeout::Timeout;
use tower::{Service, ServiceBuilder, ServiceExt};

/// How many pieces of an article there are.
struct Count(String);
impl Request for Count {
    type Reply = Option<u32>;
}

/// Takes one piece; the reply tells how many are left.
struct Take(String);
impl Request for Take {
    type Reply = Result<u32, SoldOut>;
}

#[derive(Debug)]
struct SoldOut;

#[derive(Message)]
enum StockMsg {
    Count(Call<Count>),
    Take(Call<Take>),
}

struct Stock(HashMap<String, u32>);

impl Actor for Stock {
    type Message = StockMsg;

    fn receive(&mut self, message: StockMsg, _: &mut Context<StockMsg>) -> HandlerResult {
        match message {
            StockMsg::Count(call) => call.answer(|Count(article)| self.0.get(&article).copied()),
            StockMsg::Take(call) => call.answer(|Take(article)| {
                let pieces = self.0.get_mut(&article).filter(|pieces| **pieces > 0).ok_or(SoldOut)?;
                *pieces -= 1;
                Ok(*pieces)
            }),
        }
        Ok(())
    }
}

/// Sheds what is too much, bounds what is under way, and gives up after a second.
type Stack = LoadShed<ConcurrencyLimit<Timeout<ActorService<StockMsg>>>>;

#[derive(Clone)]
struct Shop {
    stock: ActorRef<StockMsg>,
    orders: Stack,
}

/// An ask in a handler, with a deadline.
async fn count(State(shop): State<Shop>, Path(article): Path<String>) -> Result<String, StatusCode> {
    match shop.stock.ask(Count(article)).within(Duration::from_secs(1)).await {
        Ok(Some(pieces)) => Ok(pieces.to_string()),
        Ok(None) => Err(StatusCode::NOT_FOUND),
        Err(AskError::Timeout { .. }) => Err(StatusCode::GATEWAY_TIMEOUT),
        Err(_) => Err(StatusCode::SERVICE_UNAVAILABLE),
    }
}

/// The same through the stack.
async fn take(State(mut shop): State<Shop>, Path(article): Path<String>) -> Result<String, StatusCode> {
    let orders =
        ServiceExt::<Take>::ready(&mut shop.orders).await.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    match orders.call(Take(article)).await {
        Ok(Ok(left)) => Ok(left.to_string()),
        Ok(Err(SoldOut)) => Err(StatusCode::CONFLICT),
        Err(error) if error.is::<tower::timeout::error::Elapsed>() => Err(StatusCode::GATEWAY_TIMEOUT),
        // Shed, or the actor has gone.
        Err(_) => Err(StatusCode::SERVICE_UNAVAILABLE),
    }
}

/// Sends one request, and returns the status and the body.
async fn request(address: std::net::SocketAddr, line: &str) -> Result<(u16, String), Box<dyn Error>> {
    let mut stream = TcpStream::connect(address).await?;
    let head = format!("{line} HTTP/1.1\r\nhost: shop\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let status = answer.split(' ').nth(1).ok_or("no status")?.parse()?;
    Ok((status, answer.rsplit("\r\n").next().unwrap_or_default().to_owned()))
}

fn main() -> Result<(), Box<dyn Error>> {
    tokio::runtime::Runtime::new()?.block_on(serve())
}

async fn serve() -> Result<(), Box<dyn Error>> {
    let tokio = tokio::runtime::Handle::current();
    let system = System::builder("shop")
        // The tasks of the shutdown may use tokio, too.
        .polls_within(move |poll| {
            let _entered = tokio.enter();
            poll();
        })
        .build()?;
    let stock = system
        .actor("stock")
        .mailbox(Mailbox::bounded(1024))
        .spawn(|| Stock(HashMap::from([("apple".into(), 2)])))?;
    let orders = ServiceBuilder::new()
        .load_shed()
        .concurrency_limit(256)
        .timeout(Duration::from_secs(1))
        .service(stock.service());
    let app = axum::Router::new()
        .route("/stock/{article}", get(count))
        .route("/orders/{article}", post(take))
        .with_state(Shop { stock, orders });

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = tokio::spawn(async move {
        let until = async {
            let _ = stopped.await;
        };
        axum::serve(listener, app).with_graceful_shutdown(until).await
    });
    // The port closes first, and the server answers what it has accepted; then the actors end.
    let shutdown = system.coordinated_shutdown();
    shutdown.add_future(Phase::SERVICE_UNBIND, "http", move || async move {
        let _ = stop.send(());
        server.await??;
        Ok(())
    })?;

    for line in [
        "GET /stock/apple",
        "POST /orders/apple",
        "POST /orders/apple",
        "POST /orders/apple",
        "GET /stock/apple",
        "GET /stock/pear",
    ] {
        let (status, body) = request(address, line).await?;
        println!("{line}: {status} {body}");
    }

    let report = shutdown.run("the end of the example").await?;
    println!("{report}");
    Ok(())
}
