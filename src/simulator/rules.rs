//! What must hold, whatever happens: the sentences. `checks.rs` looks whether it does.

macro_rules! rules {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $sentence:literal);+ $(;)?) => {
        /// A rule that must hold.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Rule { $($(#[$doc])* $variant),+ }

        impl Rule {
            /// Every rule.
            pub const ALL: &[Rule] = &[$(Rule::$variant),+];

            /// Its short name.
            pub fn name(self) -> &'static str {
                match self { $(Rule::$variant => $name),+ }
            }

            /// What must hold.
            pub fn sentence(self) -> &'static str {
                match self { $(Rule::$variant => $sentence),+ }
            }
        }
    };
}

rules! {
    /// About dispatches.
    DispatchedOnce = "dispatched-once", "At most one dispatch per command and attempt reaches an agent.";
    /// About repeats.
    CarriedOutOnce = "carried-out-once", "An agent process carries out a command at most once, unless repeating it does no harm.";
    /// About disks.
    OneWriteAtATime = "one-write-at-a-time", "At most one write runs on a machine at a time.";
    /// About disks.
    NoWriteTwice = "no-write-twice", "No write is repeated unless the first never started or its agent process is gone.";
    /// About the living.
    LivingDontExpire = "living-don't-expire", "No node expires while its agent's heartbeats or answers got through within the limit.";
    /// About steps.
    StepsHaveTheirTime = "steps-have-their-time", "No step expires before its limit has really passed.";
    /// About the dead.
    DeadEnd = "dead-end", "A node whose agent is silent, or whose step takes too long, ends within its limit and one second.";
    /// About deadlines.
    DeadlinesFire = "deadlines-fire", "A deadline in the row is handled within one second of its time.";
    /// About waiting.
    WaitsHaveDeadlines = "waits-have-deadlines", "Every waiting row has a deadline, unless that limit is off.";
    /// About open commands.
    CommandsAreAsked = "commands-are-asked", "While a command is open and its agent known, a request is under way or about to be.";
    /// About refusals.
    RefusalsChangeNothing = "refusals-change-nothing", "A refused event changes nothing and asks for nothing.";
    /// About versions.
    VersionsGrow = "versions-grow", "The version grows by one with every change, and only then.";
    /// About the store.
    RowsAreWhole = "rows-are-whole", "What is stored and read again equals the node.";
    /// About ends.
    WaitsEnd = "waits-end", "Once the world is at peace, every node comes to rest.";
    /// About states.
    MovesAreEdges = "moves-are-edges", "A node moves from state to state only along the edges of the table.";
    /// About turns.
    TurnsAreLimited = "turns-are-limited", "Never more nodes have a turn than may, restarts or not.";
    /// About turns.
    TurnsAreTaken = "turns-are-taken", "A node whose turn has come takes it, whatever was lost on the way.";
    /// About turns.
    TurnsComeInOrder = "turns-come-in-order", "Nobody who asked for a turn later comes before one who waits.";
    /// About turns.
    WhoWaitsAsksNothing = "who-waits-asks-nothing", "While a node waits for its turn nothing is asked of its agent and, if its work has not begun, of its driver.";
    /// About failures.
    FailuresHaveReasons = "failures-have-reasons", "Failed work says why.";
    /// About work.
    HarmlessFaultsDontFail = "harmless-faults-don't-fail", "Work that only met lost, late or garbled messages, restarts and a failing store ends well.";
    /// About strangers.
    StrangersChangeNothing = "strangers-change-nothing", "A heartbeat with a wrong token, address or certificate is refused.";
}

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub rule: Rule,
    /// What was seen.
    pub what: String,
    /// When, in milliseconds since the beginning.
    pub at: i64,
}
