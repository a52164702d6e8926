//! An HTTP proxy in the middle of one direction of the conversation, which harms it on demand and counts what arrives.
//!
//! ```text
//!   conductor ──▶ Proxy ──▶ the agent's API          the agent advertises the proxy's port
//!   agent ──────▶ Proxy ──▶ the conductor's API      the agent is told the proxy's port
//! ```
//!
//! Plain HTTP, one request to a connection. Threads of its own, so that a test that waits never holds up the traffic.
//! Without a fault it passes everything on unchanged, and it listens exactly as long as the one behind it does: whoever calls
//! a process that has died is refused by its machine.

mod wire;

use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use self::wire::{answer, body_start, is_listened_on, pass_on, read_reply, read_request};
use super::{eventually, free_port};

/// Longest time a message may rest anywhere in the proxy.
const REST_MAX: Duration = Duration::from_secs(90);

const PAUSE_BETWEEN_ACCEPTS: Duration = Duration::from_millis(10);

/// One request, as far as faults and counts tell requests apart.
#[derive(Debug, Clone, Default)]
pub struct Request {
    pub method: String,
    /// Without the query: it holds the token.
    pub path: String,
    /// `name` of a command.
    pub command: String,
    /// Name of the step in a command.
    pub step: String,
}

impl Request {
    /// A command that carries out this step.
    pub fn is_dispatch_of(&self, step: &str) -> bool {
        self.method == "POST" && self.step == step
    }

    /// A command of this name.
    pub fn is_command(&self, name: &str) -> bool {
        self.method == "POST" && self.command == name
    }

    /// Reads a running command, or all of them.
    pub fn is_poll(&self) -> bool {
        self.method == "GET" && self.path.starts_with("/v1/commands")
    }

    /// Reads one command by its id: only of a command the conductor knows to be its own.
    pub fn is_poll_of_one(&self) -> bool {
        self.is_poll() && self.path.trim_end_matches('/') != "/v1/commands"
    }

    pub fn is_heartbeat(&self) -> bool {
        self.method == "POST" && self.path.starts_with("/v1/heartbeat/")
    }

    pub fn is_lookup(&self) -> bool {
        self.method == "GET" && self.path == "/v1/lookup"
    }
}

/// What becomes of a request.
#[derive(Debug, Clone)]
pub enum Fault {
    /// The connection is closed before anything was passed on.
    LoseRequest,
    /// It arrives; the connection is closed without the answer.
    LoseReply,
    /// Answered by the proxy: status and body. Not passed on.
    Answer(u16, String),
    /// Passed on; this comes back instead of the answer.
    Replace(u16, String),
    /// Only the first half of the answer's body comes back.
    Truncate,
    /// The answer comes that much later.
    Delay(Duration),
}

/// How a peer is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absence {
    /// Connections are closed at once.
    Closed,
    /// Connections come about, and then nothing happens.
    Silent,
}

/// Where a message is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// Before the request is passed on.
    Request,
    /// Before the answer is passed back; the request has been carried out.
    Reply,
}

/// What was seen of one request.
#[derive(Debug, Clone)]
pub struct Seen {
    pub request: Request,
    /// All of it was passed on to the peer.
    pub arrived: bool,
    /// Its answer was passed back, late at worst.
    pub answered: bool,
    pub at: Instant,
}

type Matches = Arc<dyn Fn(&Request) -> bool + Send + Sync>;

#[derive(Clone)]
enum Deed {
    Fault(Fault),
    Hold(Point, Arc<Gate>),
}

struct Rule {
    matches: Matches,
    /// To how many more requests it applies.
    left: usize,
    deed: Deed,
}

#[derive(Default)]
struct State {
    peer_port: Option<u16>,
    absence: Option<(Absence, Matches)>,
    rules: Vec<Rule>,
    seen: Vec<Seen>,
    /// Query of the last request that had one: it lets the test in, too.
    query: String,
    is_over: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with the lock")
    }
}

/// Ended when dropped.
pub struct Proxy {
    pub port: u16,
    pub url: String,
    shared: Arc<Shared>,
}

impl Proxy {
    /// With nobody behind it yet.
    pub fn start() -> Proxy {
        let port = free_port();
        let shared = Arc::<Shared>::default();
        let serving = shared.clone();
        thread::spawn(move || listen(&serving, port));
        Proxy {
            port,
            url: format!("http://127.0.0.1:{port}"),
            shared,
        }
    }

    /// Who is behind it from now on.
    pub fn lead_to(&self, port: u16) {
        self.shared.state().peer_port = Some(port);
    }

    /// The next `times` requests that match are harmed.
    pub fn harm(
        &self,
        times: usize,
        fault: Fault,
        matches: impl Fn(&Request) -> bool + Send + Sync + 'static,
    ) {
        self.shared.state().rules.push(Rule {
            matches: Arc::new(matches),
            left: times,
            deed: Deed::Fault(fault),
        });
    }

    /// Holds the next request that matches, or its answer, until the test has decided about it.
    pub fn hold(
        &self,
        point: Point,
        matches: impl Fn(&Request) -> bool + Send + Sync + 'static,
    ) -> Hold {
        let gate = Arc::<Gate>::default();
        self.shared.state().rules.push(Rule {
            matches: Arc::new(matches),
            left: 1,
            deed: Deed::Hold(point, gate.clone()),
        });
        Hold(gate)
    }

    /// For all requests that match, the peer is not there until [`Proxy::back`].
    pub fn gone(
        &self,
        absence: Absence,
        matches: impl Fn(&Request) -> bool + Send + Sync + 'static,
    ) {
        self.shared.state().absence = Some((absence, Arc::new(matches)));
    }

    /// The peer is there again.
    pub fn back(&self) {
        self.shared.state().absence = None;
        self.shared.changed.notify_all();
    }

    /// Everything that came, in the order it was dealt with.
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.state().seen.clone()
    }

    /// How often a step was dispatched: all of them, and those that arrived.
    pub fn dispatches(&self, step: &str) -> (usize, usize) {
        let seen = self.seen();
        let of_step: Vec<&Seen> = seen
            .iter()
            .filter(|seen| seen.request.is_dispatch_of(step))
            .collect();
        let arrived = of_step.iter().filter(|seen| seen.arrived).count();
        (of_step.len(), arrived)
    }

    /// Waits for a request that matches and was passed on and answered after this call.
    pub async fn passes(&self, what: &str, matches: impl Fn(&Request) -> bool) {
        let start = Instant::now();
        eventually(what, async || {
            let passed = |seen: &Seen| seen.at > start && seen.answered && matches(&seen.request);
            self.seen().iter().any(passed).then_some(())
        })
        .await;
    }

    /// The token of the last request that carried one.
    pub fn token(&self) -> Option<String> {
        let query = self.shared.state().query.clone();
        let mut arguments = query.split('&');
        arguments.find_map(|argument| argument.strip_prefix("agent_token=").map(str::to_owned))
    }

    /// The agent's own word for how far the command is that carries out `step`; past all faults, and unseen by the counts.
    pub fn agent_says(&self, step: &str) -> Option<String> {
        let (port, query) = {
            let state = self.shared.state();
            (state.peer_port?, state.query.clone())
        };
        let request = format!(
            "GET /v1/commands/?{query} HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n\r\n"
        );
        let reply = read_reply(pass_on(port, request.as_bytes()).ok()?).ok()?;
        let list: Value = serde_json::from_slice(&reply[body_start(&reply)..]).ok()?;
        let commands = list["commands"].as_array()?;
        // A step that runs is not named by the agent yet.
        let is_it = |command: &&Value| {
            let echoed = command.pointer("/command_result/deploy_step/step");
            command["command_name"] == "execute_deploy_step"
                && echoed.is_none_or(|echoed| echoed == step)
        };
        let status = commands.iter().rfind(is_it)?["command_status"].as_str()?;
        Some(status.to_owned())
    }

    /// Waits until every fault that was ordered has met its request.
    pub async fn faults_begun(&self) {
        eventually("the faults to meet their requests", async || {
            self.shared.state().rules.is_empty().then_some(())
        })
        .await;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.is_over = true;
        for rule in state.rules.drain(..) {
            if let Deed::Hold(_, gate) = rule.deed {
                gate.decide(Decision::Cut);
            }
        }
        drop(state);
        self.shared.changed.notify_all();
        if thread::panicking() {
            let seen = self.seen();
            println!("--- the last requests through the proxy on {}", self.port);
            for seen in &seen[seen.len().saturating_sub(30)..] {
                println!("{seen:?}");
            }
        }
    }
}

/// A message the test decides about. Cut if it is dropped undecided.
pub struct Hold(Arc<Gate>);

impl Hold {
    /// Waits until the message is there.
    pub async fn reached(&self) {
        eventually("the message to be held", async || {
            self.0.state().0.then_some(())
        })
        .await;
    }

    /// It goes on as if nothing had been.
    pub fn release(self) {
        self.0.decide(Decision::GoOn);
    }

    /// The connection is closed; the message is lost.
    pub fn cut(self) {
        self.0.decide(Decision::Cut);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.decide(Decision::Cut); // the first decision stands
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decision {
    GoOn,
    Cut,
}

/// Whether the message is there, and what was decided about it.
#[derive(Default)]
struct Gate {
    state: Mutex<(bool, Option<Decision>)>,
    decided: Condvar,
}

impl Gate {
    fn state(&self) -> MutexGuard<'_, (bool, Option<Decision>)> {
        self.state.lock().expect("nobody panics with the lock")
    }

    fn decide(&self, decision: Decision) {
        self.state().1.get_or_insert(decision);
        self.decided.notify_all();
    }

    fn pass(&self) -> Decision {
        let mut state = self.state();
        state.0 = true;
        let waited = self
            .decided
            .wait_timeout_while(state, REST_MAX, |(_, decision)| decision.is_none());
        let (state, _) = waited.expect("nobody panics with the lock");
        state.1.unwrap_or(Decision::Cut)
    }
}

/// Listens while the peer does, or while a test says what becomes of connections.
fn listen(shared: &Arc<Shared>, port: u16) {
    let mut listener = None;
    loop {
        thread::sleep(PAUSE_BETWEEN_ACCEPTS);
        let (peer, absent) = {
            let state = shared.state();
            if state.is_over {
                return;
            }
            (state.peer_port, state.absence.is_some())
        };
        if !absent && !peer.is_some_and(is_listened_on) {
            listener = None;
            continue;
        }
        let open = listener.get_or_insert_with(|| {
            let open = TcpListener::bind(("127.0.0.1", port)).expect("a port of its own");
            open.set_nonblocking(true).expect("a plain socket");
            open
        });
        while let Ok((connection, _)) = open.accept() {
            let shared = shared.clone();
            // A peer that goes away in the middle is no concern of the test.
            thread::spawn(move || drop(serve(&shared, connection)));
        }
    }
}

/// One connection: one request, one answer.
fn serve(shared: &Shared, mut client: TcpStream) -> io::Result<()> {
    client.set_read_timeout(Some(REST_MAX))?;
    let (request, query, bytes) = read_request(&client)?;
    let mut state = shared.state();
    if !query.is_empty() {
        state.query = query;
    }
    let number = state.seen.len();
    state.seen.push(Seen {
        request: request.clone(),
        arrived: false,
        answered: false,
        at: Instant::now(),
    });
    if let Some((absence, matches)) = state.absence.clone()
        && matches(&request)
    {
        if absence == Absence::Silent {
            let away = |state: &mut State| state.absence.is_some() && !state.is_over;
            drop(shared.changed.wait_timeout_while(state, REST_MAX, away));
        }
        return Ok(());
    }
    let deed = take_deed(&mut state, &request);
    drop(state);

    match &deed {
        Some(Deed::Fault(Fault::LoseRequest)) => return Ok(()),
        Some(Deed::Fault(Fault::Answer(status, body))) => {
            return client.write_all(&answer(*status, body));
        }
        Some(Deed::Hold(Point::Request, gate)) if gate.pass() == Decision::Cut => return Ok(()),
        _ => {}
    }
    let port = shared.state().peer_port.ok_or(io::ErrorKind::NotFound)?;
    let peer = pass_on(port, &bytes)?;
    shared.state().seen[number].arrived = true;
    let mut reply = read_reply(peer)?;
    match &deed {
        Some(Deed::Fault(Fault::LoseReply)) => return Ok(()),
        Some(Deed::Hold(Point::Reply, gate)) if gate.pass() == Decision::Cut => return Ok(()),
        Some(Deed::Fault(Fault::Truncate)) => {
            let body = body_start(&reply);
            reply.truncate(body + (reply.len() - body) / 2);
            return client.write_all(&reply);
        }
        Some(Deed::Fault(Fault::Replace(status, body))) => {
            return client.write_all(&answer(*status, body));
        }
        Some(Deed::Fault(Fault::Delay(time))) => thread::sleep(*time),
        _ => {}
    }
    client.write_all(&reply)?;
    let seen = &mut shared.state().seen[number];
    (seen.answered, seen.at) = (true, Instant::now());
    Ok(())
}

/// The deed that applies to this request: the oldest one ordered.
fn take_deed(state: &mut State, request: &Request) -> Option<Deed> {
    let at = state
        .rules
        .iter()
        .position(|rule| (rule.matches)(request))?;
    let rule = &mut state.rules[at];
    rule.left -= 1;
    let deed = rule.deed.clone();
    if rule.left == 0 {
        state.rules.remove(at);
    }
    Some(deed)
}
