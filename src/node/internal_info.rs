//! `driver_internal_info`: what the conductor keeps about a node's work, in the shape that agents and clients of the Bare Metal
//! API read it.
//!
//! Nothing is stored in this shape; it is computed from the node for lookup replies, for commands to the agent and for the API.
//! The token never is in it, only the fact that there is one.

use serde_json::{Value, json};

use super::masking::STARS;
use super::state::{Node, Object};
use super::steps::{WorkStep, core_steps};
use super::work::{Work, WorkKind};
use crate::command::StepsOf;
use crate::timestamp::Timestamp;

/// The `driver_internal_info` of a node.
pub fn driver_internal_info(node: &Node) -> Object {
    let mut info = Object::new();
    if node.attributes.instance_info.contains_key("image_source") {
        // Other images are refused before a deploy begins.
        info.insert("is_whole_disk_image".to_owned(), json!(true));
    }
    if let Some(session) = &node.session {
        info.insert("agent_secret_token".to_owned(), json!(STARS));
        let mut put = |key: &str, value: Option<String>| {
            if let Some(value) = value {
                info.insert(key.to_owned(), json!(value));
            }
        };
        put("agent_url", session.callback_url.clone());
        put("agent_version", session.agent_version.clone());
        put(
            "agent_last_heartbeat",
            session.last_heartbeat_at.map(utc_text),
        );
    }
    if let Some(work) = node.work() {
        put_work(&mut info, work);
    }
    info
}

fn put_work(info: &mut Object, work: &Work) {
    let Some(of) = work.kind.steps_of() else {
        return;
    };
    let word = of.word();
    let is_known = !work.steps.is_empty();
    let steps: Vec<Value> = if !is_known && work.kind == WorkKind::Deploy {
        core_steps().iter().map(step_document).collect()
    } else {
        work.steps.iter().map(step_document).collect()
    };
    let mut put = |key: String, value: Value| info.insert(key, value);
    put(format!("{word}_steps"), Value::Array(steps));
    put(format!("{word}_step_index"), json!(work.current));
    if is_known {
        put("steps_validated".to_owned(), json!(true));
    }
    if work.kind == WorkKind::Deploy {
        put("deploy_boot_mode".to_owned(), json!(work.boot_mode.name()));
    }
    if of == StepsOf::Clean {
        for (key, value) in [
            ("agent_erase_devices_iterations", json!(1)),
            ("agent_erase_devices_zeroize", json!(true)),
            ("agent_continue_if_secure_erase_failed", json!(false)),
            ("agent_continue_if_ata_erase_failed", json!(false)),
            ("agent_enable_nvme_secure_erase", json!(true)),
            ("agent_enable_ata_secure_erase", json!(true)),
            ("disk_erasure_concurrency", json!(4)),
            ("agent_erase_skip_read_only", json!(false)),
        ] {
            put(key.to_owned(), value);
        }
    }
    if !work.hardware_manager_version.is_null() {
        put(
            "hardware_manager_version".to_owned(),
            work.hardware_manager_version.unpack(),
        );
    }
    if let Some(cached) = steps_by_interface(&work.agent_steps.unpack()) {
        put(format!("agent_cached_{word}_steps"), cached);
    }
}

/// The step in progress as `deploy_step`, `clean_step` and `service_step` show it; empty when there is none of this list.
pub fn current_step(node: &Node, of: StepsOf) -> Value {
    node.work()
        .filter(|work| work.kind.steps_of() == Some(of))
        .and_then(Work::current_step)
        .map_or_else(|| json!({}), step_document)
}

/// A time as agents and clients read it inside documents: UTC, always with six digits after the point, no zone.
pub fn utc_text(at: Timestamp) -> String {
    const MS_PER_DAY: i64 = 86_400_000;
    let (days, ms) = (at.0.div_euclid(MS_PER_DAY), at.0.rem_euclid(MS_PER_DAY));
    let (year, month, day) = civil_date(days);
    let (seconds, fraction) = (ms / 1000, ms % 1000);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{fraction:03}000",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// Arguments are left out: they may hold secrets, and nobody reads them here.
fn step_document(step: &WorkStep) -> Value {
    json!({
        "interface": step.interface,
        "step": step.step,
        "priority": step.priority,
        "abortable": !step.is_not_abortable,
        "argsinfo": null,
    })
}

/// The agent lists its steps by hardware manager; the cache lists them by interface.
fn steps_by_interface(agent_steps: &Value) -> Option<Value> {
    let by_manager = agent_steps.as_object()?;
    let mut by_interface = Object::new();
    for step in by_manager.values().filter_map(Value::as_array).flatten() {
        let Some(interface) = step.get("interface").and_then(Value::as_str) else {
            continue;
        };
        if let Some(steps) = by_interface
            .entry(interface)
            .or_insert_with(|| json!([]))
            .as_array_mut()
        {
            steps.push(step.clone());
        }
    }
    Some(Value::Object(by_interface))
}

/// Year, month and day of a day counted from 1970-01-01, in the Gregorian calendar.
fn civil_date(days: i64) -> (i64, i64, i64) {
    // Count from 0000-03-01, so that the leap day is the last day of a year, in eras of 400 years.
    let shifted = days.saturating_add(719_468);
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::work::WorkPhase;
    use crate::node::{Attributes, BootMode, NodeId, Provision, Session};

    #[test]
    fn times_are_written_in_utc_with_six_digits() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000000"),
            (951_782_399_999, "2000-02-28T23:59:59.999000"),
            (951_868_799_000, "2000-02-29T23:59:59.000000"),
            (1_796_066_135_235, "2026-11-30T19:15:35.235000"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000000"),
            (-1, "1969-12-31T23:59:59.999000"),
        ] {
            assert_eq!(utc_text(Timestamp(ms)), text);
        }
    }

    #[test]
    fn an_idle_node_has_nothing_to_show() {
        let node = Node::enrolled(NodeId::default(), Attributes::default(), Timestamp(0));
        assert_eq!(driver_internal_info(&node), Object::new());
        assert_eq!(current_step(&node, StepsOf::Deploy), json!({}));
    }

    #[test]
    fn a_deploying_node_shows_its_agent_and_its_steps_but_no_secret() {
        let mut node = Node::enrolled(NodeId::default(), Attributes::default(), Timestamp(0));
        node.session = Some(Session {
            nonce: "do-not-show".to_owned(),
            confirmed: true,
            callback_url: Some("https://10.0.0.1:9999".to_owned()),
            agent_version: Some("13.0.0".to_owned()),
            certificate: None,
            instance: None,
            last_heartbeat_at: Some(Timestamp(1)),
            last_contact_at: None,
            trouble: None,
            asked_again_at: None,
            proved_alive_at: None,
        });
        let mut work = Work::begun(WorkKind::Deploy, Timestamp(0), BootMode::Bios, Vec::new());
        work.phase = WorkPhase::InBandStep;
        work.steps = core_steps().into();
        let told = json!({"A": [{"interface": "raid", "step": "x", "priority": 0}, {"step": "no interface"}]});
        work.agent_steps = (&told).into();
        work.hardware_manager_version = (&json!({"A": "1"})).into();
        node.provision = Provision::Working(work.into());
        let info = driver_internal_info(&node);
        assert_eq!(info["agent_secret_token"], "******");
        assert_eq!(info["agent_last_heartbeat"], "1970-01-01T00:00:00.001000");
        assert_eq!(info["agent_cached_deploy_steps"]["raid"][0]["step"], "x");
        assert_eq!(info["deploy_steps"][0]["step"], "write_image");
        assert_eq!(info["steps_validated"], true);
        assert_eq!(info["hardware_manager_version"], json!({"A": "1"}));
        assert!(!Value::Object(info).to_string().contains("do-not-show"));
        assert_eq!(current_step(&node, StepsOf::Deploy)["priority"], 80);
    }

    #[test]
    fn before_the_agent_told_its_steps_the_conductors_own_are_shown_as_not_yet_validated() {
        let mut node = Node::enrolled(NodeId::default(), Attributes::default(), Timestamp(0));
        let work = Work::begun(WorkKind::Deploy, Timestamp(0), BootMode::Uefi, Vec::new());
        node.provision = Provision::Working(work.into());
        let info = driver_internal_info(&node);
        let names: Vec<&Value> = info["deploy_steps"]
            .as_array()
            .unwrap()
            .iter()
            .map(|step| &step["step"])
            .collect();
        assert_eq!(
            names,
            [
                "write_image",
                "prepare_instance_boot",
                "tear_down_agent",
                "boot_instance"
            ]
        );
        assert_eq!(info["deploy_boot_mode"], "uefi");
        for unknown in [
            "steps_validated",
            "hardware_manager_version",
            "agent_cached_deploy_steps",
        ] {
            assert_eq!(info.get(unknown), None, "{unknown}");
        }
    }
}
