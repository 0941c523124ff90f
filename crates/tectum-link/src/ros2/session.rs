//! A session of zenoh: what arrives, and what is published.
//!
//! ```text
//!  zenoh's threads ── latest message of each topic ──▶ arrivals ──▶ I/O thread
//!  I/O thread ── orders, two may wait ──▶ thread of the session ──▶ zenoh's threads
//! ```
//!
//! Calls of zenoh may block, and panic on a runtime with one thread such as that of the I/O thread:
//! they are made on a thread of their own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::{Notify, mpsc, oneshot};
use zenoh::bytes::ZBytes;
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::{Publisher, Subscriber};
use zenoh::qos::CongestionControl;
use zenoh::sample::{Sample, SampleKind};
use zenoh::{Config, Wait};

use super::graph::{
    Announced, Endpoint, Node, Qos, Topic, all_tokens, attachment, gid, type_of_key,
};
use crate::socket::MAX_MESSAGE;

/// Orders that wait for the session.
const MAX_ORDERS: usize = 2;
/// Topics with another type that are remembered.
const MAX_MISMATCHES: usize = 64;
/// Other publishers of the action that are remembered.
const MAX_WRITERS: usize = 64;

/// How a session is made, and what it publishes and subscribes to.
#[derive(Clone)]
pub(crate) struct SessionPlan {
    /// `tcp/HOST:PORT`
    pub endpoint: String,
    /// Whether it is a peer, which others connect to as well.
    pub is_peer: bool,
    /// User and password.
    pub credentials: Option<(String, String)>,
    pub domain: u32,
    pub namespace: String,
    pub node: String,
    pub subscribed: Vec<Topic>,
    pub published: Vec<Topic>,
}

impl SessionPlan {
    /// No discovery by multicast; a peer listens on this machine only.
    fn config(&self) -> zenoh::Result<Config> {
        let mut config = Config::default();
        let json = |text: &str| serde_json::Value::from(text).to_string();
        let endpoints = format!("[{}]", json(&self.endpoint));
        let (mode, listen) = match self.is_peer {
            true => ("\"peer\"", "[\"tcp/127.0.0.1:0\"]"),
            false => ("\"client\"", "[]"),
        };
        config.insert_json5("mode", mode)?;
        config.insert_json5("connect/endpoints", &endpoints)?;
        config.insert_json5("connect/timeout_ms", "0")?;
        config.insert_json5("connect/exit_on_failure", "true")?;
        config.insert_json5("listen/endpoints", listen)?;
        config.insert_json5("scouting/multicast/enabled", "false")?;
        let limit = MAX_MESSAGE.to_string();
        config.insert_json5("transport/link/rx/max_message_size", &limit)?;
        if let Some((user, password)) = &self.credentials {
            config.insert_json5("transport/auth/usrpwd/user", &json(user))?;
            config.insert_json5("transport/auth/usrpwd/password", &json(password))?;
        }
        Ok(config)
    }
}

/// A topic that another node has with another type.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mismatch {
    /// The topic as the scenario has it.
    pub own: Topic,
    /// The other type and its hash, as keys have them.
    pub type_name: String,
    pub hash: String,
    /// Whether it is a subscriber, to which our messages are not delivered.
    pub is_subscriber: bool,
}

/// What has arrived since it was last taken.
#[derive(Default)]
pub(crate) struct Taken {
    /// The latest message of each subscribed topic.
    pub messages: Vec<Option<ZBytes>>,
    /// Topics with another type that were not known before.
    pub mismatches: Vec<Mismatch>,
    /// Another node that publishes what we publish: its name, and the topic.
    pub other_writer: Option<(String, String)>,
}

/// What zenoh's threads deliver.
pub(crate) struct Arrivals {
    domain: u32,
    subscribed: Vec<Topic>,
    published: Vec<Topic>,
    state: Mutex<State>,
    /// Wakes the I/O thread.
    arrived: Notify,
}

#[derive(Default)]
struct State {
    messages: Vec<Option<ZBytes>>,
    /// Each topic with another type, and whether it was taken.
    mismatches: BTreeMap<Mismatch, bool>,
    /// Other publishers of what we publish, by token: node and topic.
    writers: BTreeMap<String, (String, String)>,
}

impl Arrivals {
    fn new(plan: &SessionPlan) -> Self {
        let messages = plan.subscribed.iter().map(|_| None).collect();
        Self {
            domain: plan.domain,
            subscribed: plan.subscribed.clone(),
            published: plan.published.clone(),
            state: Mutex::new(State {
                messages,
                ..State::default()
            }),
            arrived: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic of another thread leaves a whole state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something has arrived since it was last taken.
    pub async fn wait(&self) {
        self.arrived.notified().await;
    }

    /// Takes what has arrived.
    pub fn take(&self) -> Taken {
        let mut state = self.lock();
        let other_writer = state.writers.values().next().cloned();
        let found = state
            .mismatches
            .iter_mut()
            .filter_map(|(mismatch, is_taken)| {
                let was_taken = std::mem::replace(is_taken, true);
                (!was_taken).then(|| mismatch.clone())
            });
        let mismatches = found.collect();
        let empty = state.messages.iter().map(|_| None).collect();
        Taken {
            messages: std::mem::replace(&mut state.messages, empty),
            mismatches,
            other_writer,
        }
    }

    /// A message of a topic with any type; the message before it is replaced.
    fn deliver(&self, index: usize, sample: &Sample) {
        if sample.kind() != SampleKind::Put {
            return;
        }
        let (topic, key) = (&self.subscribed[index], sample.key_expr().as_str());
        if key == topic.key(self.domain) {
            self.lock().messages[index] = Some(sample.payload().clone());
        } else if let Some((type_name, hash)) = type_of_key(key) {
            self.add_mismatch(topic, type_name, hash, false);
        }
        self.arrived.notify_one();
    }

    /// A token that appeared or disappeared.
    fn announce(&self, own_zid: &str, sample: &Sample) {
        let token = sample.key_expr().as_str();
        if sample.kind() == SampleKind::Delete {
            self.lock().writers.remove(token);
            self.arrived.notify_one();
            return;
        }
        let Some(announced) = Announced::parse(token).filter(|other| other.zid != own_zid) else {
            return;
        };
        let of = |topics: &[Topic]| {
            let found = topics.iter().find(|topic| topic.name == announced.topic);
            found.cloned()
        };
        let is_subscriber = announced.endpoint == Endpoint::Subscriber;
        let (type_name, hash) = (&announced.type_name, &announced.hash);
        match (is_subscriber, of(&self.subscribed), of(&self.published)) {
            (false, Some(topic), _) | (true, _, Some(topic))
                if !topic.has_type(type_name, hash) =>
            {
                self.add_mismatch(&topic, type_name, hash, is_subscriber);
            }
            _ => {}
        }
        if !is_subscriber && let Some(topic) = of(&self.published) {
            let writer = (announced.node, topic.name);
            let mut state = self.lock();
            // One is enough to stop the robot.
            if state.writers.len() < MAX_WRITERS {
                state.writers.insert(token.to_owned(), writer);
            }
        }
        self.arrived.notify_one();
    }

    fn add_mismatch(&self, topic: &Topic, type_name: &str, hash: &str, is_subscriber: bool) {
        let mismatch = Mismatch {
            own: topic.clone(),
            type_name: type_name.to_owned(),
            hash: hash.to_owned(),
            is_subscriber,
        };
        let mut state = self.lock();
        if state.mismatches.len() < MAX_MISMATCHES {
            state.mismatches.entry(mismatch).or_insert(false);
        }
    }
}

/// What the session is to do.
enum Order {
    /// Publishes messages, each with the index of its topic.
    Publish(Vec<(usize, Vec<u8>)>),
    /// Ends the session after what was ordered before, and answers then.
    Close(oneshot::Sender<()>),
}

/// A session, which ends when this is dropped.
pub(crate) struct Session {
    pub arrivals: Arc<Arrivals>,
    orders: mpsc::Sender<Order>,
}

impl Session {
    /// Connects, subscribes and announces the node.
    ///
    /// # Errors
    /// Why there is no session.
    pub async fn open(plan: SessionPlan) -> Result<Self, String> {
        let arrivals = Arc::new(Arrivals::new(&plan));
        let (orders, inbox) = mpsc::channel(MAX_ORDERS);
        let (opened, open) = oneshot::channel();
        let own = arrivals.clone();
        std::thread::Builder::new()
            .name("tectum-ros2".to_owned())
            .spawn(move || run(&plan, &own, opened, inbox))
            .map_err(|error| format!("a thread for zenoh: {error}"))?;
        let ended = |_| "the thread of zenoh ended".to_owned();
        open.await.map_err(ended)??;
        Ok(Self { arrivals, orders })
    }

    /// Publishes messages, each with the index of its topic.
    ///
    /// # Errors
    /// A session that has ended.
    pub async fn publish(&self, messages: Vec<(usize, Vec<u8>)>) -> Result<(), String> {
        self.order(Order::Publish(messages)).await
    }

    /// Ends the session after what was published.
    ///
    /// # Errors
    /// A session that has ended.
    pub async fn close(&self) -> Result<(), String> {
        let (done, is_done) = oneshot::channel();
        self.order(Order::Close(done)).await?;
        is_done.await.map_err(|_| ended())
    }

    async fn order(&self, order: Order) -> Result<(), String> {
        self.orders.send(order).await.map_err(|_| ended())
    }
}

fn ended() -> String {
    "the session of zenoh ended".to_owned()
}

/// The thread of a session, from its beginning to its end.
fn run(
    plan: &SessionPlan,
    arrivals: &Arc<Arrivals>,
    opened: oneshot::Sender<Result<(), String>>,
    mut inbox: mpsc::Receiver<Order>,
) {
    let mut entities = match Entities::declare(plan, arrivals) {
        Ok(entities) => entities,
        Err(error) => {
            // Without a receiver no one waits for the session.
            let _ = opened.send(Err(reason(plan, &*error)));
            return;
        }
    };
    let mut done = None;
    if opened.send(Ok(())).is_ok() {
        while let Some(order) = inbox.blocking_recv() {
            match order {
                Order::Publish(messages) => entities.publish(messages),
                Order::Close(answer) => {
                    done = Some(answer);
                    break;
                }
            }
        }
    }
    // Later orders are refused from here on.
    drop(inbox);
    entities.close();
    done.into_iter().for_each(|done| {
        let _ = done.send(());
    });
}

/// The reason of zenoh without the place in its sources.
fn reason(plan: &SessionPlan, error: &dyn std::error::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at /").next().unwrap_or_default();
    let user = match plan.credentials {
        Some(_) => "with this user and password",
        None => "that asks for no user",
    };
    format!(
        "no router of zenoh {user} answers at {}: {}",
        plan.endpoint,
        text.trim()
    )
}

/// A publisher, and what its messages have besides their payload.
struct Source {
    publisher: Publisher<'static>,
    gid: [u8; 16],
    /// The number of its last message.
    sequence: i64,
}

/// A session with all that it declares.
struct Entities {
    session: zenoh::Session,
    sources: Vec<Source>,
    _subscribers: Vec<Subscriber<()>>,
    _tokens: Vec<LivelinessToken>,
}

impl Entities {
    fn declare(plan: &SessionPlan, arrivals: &Arc<Arrivals>) -> zenoh::Result<Self> {
        let session = zenoh::open(plan.config()?).wait()?;
        let node = Node {
            domain: plan.domain,
            zid: session.zid().to_string(),
            namespace: plan.namespace.clone(),
            name: plan.node.clone(),
        };
        let announce = |token: String| session.liveliness().declare_token(token).wait();
        let mut tokens = vec![announce(node.token())?];
        let (mut subscribers, mut sources) = (Vec::new(), Vec::new());
        let (own, zid) = (arrivals.clone(), node.zid.clone());
        let graph = session
            .liveliness()
            .declare_subscriber(all_tokens(plan.domain))
            .history(true)
            .callback(move |sample| own.announce(&zid, &sample))
            .wait()?;
        subscribers.push(graph);
        for (index, topic) in plan.subscribed.iter().enumerate() {
            let own = arrivals.clone();
            let subscriber = session
                .declare_subscriber(topic.any_key(plan.domain))
                .callback(move |sample| own.deliver(index, &sample))
                .wait()?;
            subscribers.push(subscriber);
            let token = node.endpoint_token(tokens.len(), Endpoint::Subscriber, topic, Qos::Sensor);
            tokens.push(announce(token)?);
        }
        for topic in &plan.published {
            // A queue of zenoh has two messages, fewer than an action may have. While this thread is
            // blocked the I/O thread waits, and gives the connection up as that of a socket.
            let publisher = session
                .declare_publisher(topic.key(plan.domain))
                .congestion_control(CongestionControl::Block)
                .express(true)
                .wait()?;
            let token = node.endpoint_token(tokens.len(), Endpoint::Publisher, topic, Qos::Command);
            sources.push(Source {
                publisher,
                gid: gid(&token),
                sequence: 0,
            });
            tokens.push(announce(token)?);
        }
        Ok(Self {
            session,
            sources,
            _subscribers: subscribers,
            _tokens: tokens,
        })
    }

    fn publish(&mut self, messages: Vec<(usize, Vec<u8>)>) {
        for (index, payload) in messages {
            let source = &mut self.sources[index];
            source.sequence += 1;
            let attachment = attachment(source.sequence, now_ns(), &source.gid);
            let sent = source.publisher.put(payload).attachment(attachment).wait();
            if let Err(error) = sent {
                tracing::debug!(%error, "an action was not published");
            }
        }
    }

    fn close(self) {
        let Self {
            session,
            sources,
            _subscribers: subscribers,
            _tokens: tokens,
        } = self;
        drop((sources, subscribers, tokens));
        if let Err(error) = session.close().wait() {
            tracing::debug!(%error, "the session of zenoh did not end in order");
        }
    }
}

/// Nanoseconds since 1970, as messages state the time of their sending.
pub(crate) fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as i64)
}
