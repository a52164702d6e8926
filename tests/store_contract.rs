//! What the store promises, case by case, on SQLite always and on PostgreSQL where `UPBEAT_TEST_POSTGRES_URL` names a server.

#[path = "support/store.rs"]
mod support;

#[path = "store/cases.rs"]
mod cases;
#[path = "store/lists.rs"]
mod lists;
#[path = "store/objects.rs"]
mod objects;
#[path = "store/opening.rs"]
mod opening;
#[path = "store/schema.rs"]
mod schema;
#[path = "store/signs.rs"]
mod signs;

use support::Database;

/// Runs an async case in a runtime of its own.
fn run(case: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(case);
}

/// Makes a test per database of each case `async fn(&Database, &Store)`.
macro_rules! on_both {
    ($($module:ident :: $case:ident),+ $(,)?) => {
        mod sqlite {
            $(#[test]
            fn $case() {
                super::once(super::Database::sqlite(), async |db, store| super::$module::$case(db, store).await);
            })+
        }
        mod postgres {
            $(#[test]
            fn $case() {
                if let Some(database) = super::Database::postgres() {
                    super::once(database, async |db, store| super::$module::$case(db, store).await);
                }
            })+
        }
    };
}

fn once(database: Database, case: impl AsyncFnOnce(&Database, &upbeat::store::Store)) {
    run(async {
        let store = database.open();
        case(&database, &store).await;
        assert_eq!(store.handle.close().await, upbeat::store::WriterEnd::Closed);
    });
}

on_both! {
    cases::a_node_comes_back_as_it_was,
    cases::what_an_inspection_found_is_kept_with_its_node,
    cases::ports_stay_in_the_order_of_their_creation,
    cases::a_save_over_another_version_changes_nothing,
    signs::signs_of_life_are_read_with_their_node,
    signs::signs_of_an_older_node_do_not_count,
    signs::signs_go_with_their_node,
    cases::every_unique_value_is_guarded,
    cases::two_ports_of_a_node_can_swap_their_addresses,
    cases::with_a_node_goes_all_that_hangs_on_it,
    cases::history_is_kept_in_order_and_trimmed,
    cases::commands_are_kept_as_a_ledger,
    cases::what_waits_is_found_at_start,
    cases::many_saves_share_a_commit,
    cases::a_bad_save_fails_alone,
    cases::a_full_queue_is_told_at_once,
    cases::whoever_waits_for_a_place_gets_one_and_takes_none_from_others,
    cases::facts_are_set_once,
    cases::odd_texts_are_stored,
    cases::closing_stores_what_is_queued,
    lists::filters_find_what_they_name,
    lists::pages_follow_each_other_in_every_order,
    lists::ports_are_listed_and_found,
    lists::nodes_are_found_by_mac,
    lists::states_are_counted,
    objects::parts_come_back_with_their_node,
    objects::what_waits_comes_back_with_its_parts,
    objects::every_unique_value_of_parts_is_guarded,
    objects::parts_are_listed_and_found,
    objects::objects_come_back_and_are_guarded_by_their_version,
    objects::names_of_objects_are_unique_within_their_kind,
    objects::objects_are_listed_by_what_they_are,
    objects::a_chassis_stays_as_long_as_a_node_names_it,
    objects::a_node_and_its_allocation_change_in_one_commit,
    objects::shards_are_counted,
    objects::rows_of_older_programs_are_read,
    objects::objects_share_a_commit_with_nodes_and_fail_alone,
    schema::tables_are_as_the_program_knows_them,
}
