//! Panics cost a message and a pause, never the actor; too many of them end it loudly. Real actors, real arbiters.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix::{Actor, Addr, Arbiter, AsyncContext as _, Context, Handler, Message, Supervised};
use tokio::sync::{mpsc, oneshot};
use upbeat::conductor::supervise::{Intensity, Watcher, start};

/// Where a fragile actor breaks, on request.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Break {
    Handler,
    Timer,
    Future,
}

#[derive(Default)]
struct Counts {
    started: AtomicUsize,
    /// `started` panics while this is above zero.
    fragile_starts: AtomicUsize,
    /// `restarting` panics while this is above zero.
    fragile_restarts: AtomicUsize,
}

struct Fragile {
    counts: Arc<Counts>,
    heard: usize,
}

fn take_one(counter: &AtomicUsize) -> bool {
    counter
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
            left.checked_sub(1)
        })
        .is_ok()
}

impl Actor for Fragile {
    type Context = Context<Self>;

    fn started(&mut self, _: &mut Context<Self>) {
        self.counts.started.fetch_add(1, Ordering::SeqCst);
        self.heard = 0;
        assert!(!take_one(&self.counts.fragile_starts), "fragile start");
    }
}

impl Supervised for Fragile {
    fn restarting(&mut self, _: &mut Context<Self>) {
        assert!(!take_one(&self.counts.fragile_restarts), "fragile restart");
    }
}

#[derive(Message)]
#[rtype(result = "()")]
struct Do(Break);

#[derive(Message)]
#[rtype(result = "()")]
struct Hear(oneshot::Sender<usize>);

impl Handler<Do> for Fragile {
    type Result = ();

    fn handle(&mut self, Do(how): Do, context: &mut Context<Self>) {
        match how {
            Break::Handler => panic!("in a handler"),
            Break::Timer => {
                context.run_later(Duration::from_millis(1), |_, _| panic!("in a timer"));
            }
            Break::Future => {
                context.spawn(actix::fut::wrap_future(async { panic!("in a future") }));
            }
        }
    }
}

impl Handler<Hear> for Fragile {
    type Result = ();

    fn handle(&mut self, Hear(reply): Hear, _: &mut Context<Self>) {
        self.heard += 1;
        let _ = reply.send(self.heard);
    }
}

/// Passes on what the supervisor tells.
struct Report(mpsc::UnboundedSender<String>, Intensity);

impl Watcher for Report {
    fn intensity(&self) -> Intensity {
        self.1
    }

    fn restarted(&self, cause: &str) {
        let _ = self.0.send(format!("restarted: {cause}"));
    }

    fn gave_up(&self, cause: &str) {
        let _ = self.0.send(format!("gave up: {cause}"));
    }
}

struct Stage {
    actor: Addr<Fragile>,
    counts: Arc<Counts>,
    reports: mpsc::UnboundedReceiver<String>,
    _arbiter: Arbiter,
}

fn stage(counts: Counts, restarts_max: usize) -> Stage {
    let arbiter = Arbiter::new();
    let counts = Arc::new(counts);
    let (sender, reports) = mpsc::unbounded_channel();
    let intensity = Intensity {
        restarts_max,
        window: Duration::from_secs(60),
    };
    let shared = counts.clone();
    let actor = start(&arbiter.handle(), 16, move |_| {
        let actor = Fragile {
            counts: shared,
            heard: 0,
        };
        (actor, Report(sender, intensity))
    });
    Stage {
        actor,
        counts,
        reports,
        _arbiter: arbiter,
    }
}

async fn hear(actor: &Addr<Fragile>) -> Option<usize> {
    let (sender, receiver) = oneshot::channel();
    actor.do_send(Hear(sender));
    tokio::time::timeout(Duration::from_secs(20), receiver)
        .await
        .expect("an answer or an end within 20 s")
        .ok()
}

#[actix_rt::test]
async fn a_panic_anywhere_costs_a_restart_and_nothing_else() {
    for (how, words) in [
        (Break::Handler, "in a handler"),
        (Break::Timer, "in a timer"),
        (Break::Future, "in a future"),
    ] {
        let mut stage = stage(Counts::default(), 10);
        assert_eq!(hear(&stage.actor).await, Some(1));
        stage.actor.do_send(Do(how));
        let report = stage.reports.recv().await.unwrap();
        assert_eq!(report, format!("restarted: {words}"));
        // The address is still good, and what waited behind the panic is answered by the restarted actor.
        assert_eq!(hear(&stage.actor).await, Some(1), "{how:?}");
        assert_eq!(stage.counts.started.load(Ordering::SeqCst), 2);
    }
}

#[actix_rt::test]
async fn panics_in_started_and_restarting_are_survived() {
    let counts = Counts {
        fragile_starts: AtomicUsize::new(2),
        fragile_restarts: AtomicUsize::new(2),
        ..Counts::default()
    };
    let mut stage = stage(counts, 10);
    assert_eq!(hear(&stage.actor).await, Some(1));
    let mut reports = Vec::new();
    while let Ok(report) = stage.reports.try_recv() {
        reports.push(report);
    }
    assert_eq!(
        reports,
        [
            "restarted: fragile start",
            "restarted: fragile restart",
            "restarted: fragile restart",
            "restarted: fragile start",
        ]
    );
}

#[actix_rt::test]
async fn too_many_panics_end_the_actor_and_are_told() {
    let mut stage = stage(Counts::default(), 3);
    for _ in 0..4 {
        stage.actor.do_send(Do(Break::Handler));
    }
    for _ in 0..3 {
        assert_eq!(
            stage.reports.recv().await.unwrap(),
            "restarted: in a handler"
        );
    }
    assert_eq!(stage.reports.recv().await.unwrap(), "gave up: in a handler");
    assert_eq!(hear(&stage.actor).await, None);
}

#[actix_rt::test]
async fn an_actor_that_breaks_all_the_time_does_not_starve_its_neighbour() {
    let arbiter = Arbiter::new();
    let (sender, mut reports) = mpsc::unbounded_channel();
    let intensity = Intensity {
        restarts_max: 1_000,
        window: Duration::from_secs(60),
    };
    let breaking = Arc::new(Counts {
        fragile_starts: AtomicUsize::new(usize::MAX),
        ..Counts::default()
    });
    let shared = breaking.clone();
    let report = Report(sender.clone(), intensity);
    let _broken = start(&arbiter.handle(), 16, move |_| {
        let actor = Fragile {
            counts: shared,
            heard: 0,
        };
        (actor, report)
    });
    let neighbour = start(&arbiter.handle(), 16, move |_| {
        let actor = Fragile {
            counts: Arc::default(),
            heard: 0,
        };
        (actor, Report(sender, intensity))
    });
    for expected in 1..=100 {
        assert_eq!(hear(&neighbour).await, Some(expected));
    }
    assert!(reports.recv().await.is_some());
    // Pauses grow from 10 ms, so it can't have started more than a handful of times by now.
    assert!(breaking.started.load(Ordering::SeqCst) < 50);
}
