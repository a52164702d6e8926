//! `rescue.finalize_rescue`: the agent's last command.

use serde_json::{Value, json};
use upbeat::demo::Faults;

use crate::lab::*;

#[tokio::test]
async fn the_agent_answers_then_goes_and_the_machine_stays_on() {
    let lab = Lab::new(Faults::none()).await;
    lab.boot().await;
    let password = json!({"rescue_password": "$6$salt$hash", "hashed": true});
    let (status, command) = lab
        .post("rescue.finalize_rescue", password, false)
        .await
        .unwrap();
    assert_eq!(
        (
            status,
            &command["command_status"],
            &command["command_result"]
        ),
        (200, &json!("SUCCEEDED"), &Value::Null),
        "it is done when it is answered"
    );
    let closed = async {
        while lab.get("/v1/status").await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, closed)
        .await
        .expect("nobody on the network may find the agent");
    let journal = lab.fleet.journal(MAC);
    assert!(lab.fleet.is_on(MAC));
    assert_eq!((journal.rescues, journal.agent_starts), (1, 1));
}

#[tokio::test]
async fn unknown_parameters_are_an_error_of_the_agent() {
    let lab = Lab::new(Faults::none()).await;
    lab.boot().await;
    let answer = lab
        .post("rescue.finalize_rescue", json!({"password": "x"}), false)
        .await
        .unwrap();
    assert_eq!(answer.0, 500);
    assert_eq!(lab.fleet.journal(MAC).rescues, 0);
}
