//! The tables as diesel knows them. `tests/store_contract.rs` compares them with what the migrations made of both databases.

diesel::table! {
    nodes (id) {
        id -> Text,
        seq -> BigInt,
        version -> BigInt,
        name -> Nullable<Text>,
        instance_uuid -> Nullable<Text>,
        instance_name -> Nullable<Text>,
        driver -> Text,
        provision_state -> Text,
        power_state -> Nullable<Text>,
        maintenance -> Bool,
        fault -> Nullable<Text>,
        resource_class -> Nullable<Text>,
        conductor_group -> Text,
        owner -> Nullable<Text>,
        lessee -> Nullable<Text>,
        retired -> Bool,
        description -> Nullable<Text>,
        shard -> Nullable<Text>,
        parent_node -> Nullable<Text>,
        chassis_uuid -> Nullable<Text>,
        next_deadline -> Nullable<BigInt>,
        waiting -> Bool,
        created_at -> BigInt,
        updated_at -> Nullable<BigInt>,
        body -> Text,
    }
}

diesel::table! {
    signs (node_id) {
        node_id -> Text,
        version -> BigInt,
        body -> Text,
    }
}

diesel::table! {
    ports (id) {
        id -> Text,
        seq -> BigInt,
        node_id -> Text,
        address -> Text,
        name -> Nullable<Text>,
        description -> Nullable<Text>,
        portgroup_uuid -> Nullable<Text>,
        created_at -> BigInt,
        updated_at -> Nullable<BigInt>,
        body -> Text,
    }
}

diesel::table! {
    parts (id) {
        id -> Text,
        seq -> BigInt,
        kind -> Text,
        node_id -> Text,
        name -> Nullable<Text>,
        claim -> Nullable<Text>,
        created_at -> BigInt,
        updated_at -> Nullable<BigInt>,
        body -> Text,
    }
}

diesel::table! {
    catalog (id) {
        id -> Text,
        seq -> BigInt,
        kind -> Text,
        version -> BigInt,
        name -> Nullable<Text>,
        owner -> Nullable<Text>,
        state -> Nullable<Text>,
        resource_class -> Nullable<Text>,
        node_id -> Nullable<Text>,
        created_at -> BigInt,
        updated_at -> Nullable<BigInt>,
        body -> Text,
    }
}

diesel::table! {
    commands (node_id, number) {
        node_id -> Text,
        number -> BigInt,
        request -> Text,
        attempt -> BigInt,
        phase -> Text,
        planned_at -> BigInt,
        changed_at -> BigInt,
        error -> Nullable<Text>,
    }
}

diesel::table! {
    history (id) {
        id -> Text,
        node_id -> Text,
        number -> BigInt,
        happened_at -> BigInt,
        conductor -> Text,
        severity -> Text,
        event_type -> Text,
        event -> Text,
        state -> Nullable<Text>,
        target -> Nullable<Text>,
        lasted_ms -> Nullable<BigInt>,
    }
}

diesel::table! {
    inventories (node_id) {
        node_id -> Text,
        body -> Text,
    }
}

diesel::table! {
    meta (key) {
        key -> Text,
        value -> Text,
    }
}

diesel::joinable!(ports -> nodes (node_id));
diesel::allow_tables_to_appear_in_same_query!(nodes, ports, parts, signs);
