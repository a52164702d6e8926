use std::io::Write as _;

use super::*;

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn load_text(text: &str) -> Result<Config, Faults> {
    load(Some(file(text).path()), &Overrides::default())
}

fn faults(text: &str) -> Vec<String> {
    let Faults(faults) = load_text(text).unwrap_err();
    faults
        .iter()
        .map(|fault| format!("{}: {}", fault.key, fault.problem))
        .collect()
}

fn environment(variables: &[(&str, &str)]) -> Overrides {
    Overrides {
        presets: Vec::new(),
        environment: variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        settings: Vec::new(),
    }
}

#[test]
fn the_commented_file_is_the_default_and_names_every_setting() {
    let text = include_str!("../../ops/upbeat.toml");
    assert_eq!(load_text(text), Ok(Config::default()));
    let document: toml::Table = text.parse().unwrap();
    for (section, settings) in print::sections(&Config::default()) {
        let in_file: Vec<&String> = document[section].as_table().unwrap().keys().collect();
        for (key, value) in &settings {
            assert_eq!(document[section].get(key), Some(value), "{section}.{key}");
        }
        assert_eq!(in_file.len(), settings.len(), "[{section}]");
    }
}

#[test]
fn nothing_at_all_gives_the_defaults() {
    assert_eq!(load(None, &Overrides::default()), Ok(Config::default()));
    assert_eq!(Config::default().validate(), Ok(()));
    assert_eq!(Config::default().agent.callback_networks.len(), 4);
    assert_eq!(Config::default().limits(), Limits::default());
}

#[test]
fn what_is_printed_is_read_back_as_the_same() {
    let mut config = Config::default();
    config.api.listen = "[::1]:1".parse().unwrap();
    config.api.public_endpoint = Some("https://api.example/bm".to_owned());
    config.conductor.host = Some("c-1".to_owned());
    config.conductor.default_boot_mode = BootMode::Bios;
    config.agent.callback_networks = vec!["127.0.0.0/8".parse().unwrap()];
    config.agent.tls_min_version = agent::TlsMinVersion::V1_3;
    config.log.format = LogFormat::Json;
    assert_eq!(load_text(&config.print_effective()), Ok(config));
}

#[test]
fn the_environment_wins_over_the_file_and_the_command_line_over_both() {
    let file = file("[api]\nmax_limit = 1\nworkers = 1\n[agent]\nheartbeat_timeout = 10\n");
    let mut overrides = environment(&[
        ("UPBEAT_API_WORKERS", "2"),
        ("UPBEAT_API_MAX_LIMIT", "2"),
        ("UPBEAT_AGENT_CALLBACK_NETWORKS", "127.0.0.0/8, ::1/128"),
        ("UPBEAT_AGENT_REQUIRE_TLS", "false"),
        ("UPBEAT_TEST_POSTGRES", "of no concern"),
        ("HOME", "/"),
    ]);
    overrides.settings = vec![("api.max_limit".to_owned(), "3".to_owned())];
    let config = load(Some(file.path()), &overrides).unwrap();
    assert_eq!(
        (
            config.api.max_limit,
            config.api.workers,
            config.agent.heartbeat_timeout
        ),
        (3, 2, 10)
    );
    assert_eq!(config.agent.callback_networks.len(), 2);
    assert!(!config.agent.require_tls);
}

#[test]
fn all_faults_are_told_at_once() {
    let found = faults(
        r#"
        stray = 1
        [api]
        lisen = "127.0.0.1:1"
        listen = "localhost"
        auth = "basic"
        max_limit = 0
        workers = "2"
        allow_unauthenticated = "yes"
        heartbeat_timeout = 10
        banana = 1
        [conductr]
        [agent]
        callback_networks = ["10.0.0.0/8", "10.0.0.0/99", "x"]
        permitted_image_formats = []
        ca_file = 7
        tls_min_version = "1.1"
        [log]
        level = "inof"
        [inspector]
        hooks = ["ports", "extra-hardware"]
        add_ports = "some"
        [database]
        url = "mysql://u:geheim@h/d"
        "#,
    );
    let expected = [
        ("", "stray stands before the first section"),
        ("", "did you mean [conductor]"),
        ("api.lisen", "did you mean listen?"),
        ("api.listen", "127.0.0.1:6385"),
        ("api.auth", "\"none\" or \"http_basic\""),
        ("api.max_limit", "from 1 to"),
        ("api.workers", "without quotes"),
        ("api.allow_unauthenticated", "true or false"),
        ("api.heartbeat_timeout", "belongs into [agent]"),
        ("api.banana", "remove it"),
        ("agent.callback_networks", "\"10.0.0.0/99\""),
        ("agent.callback_networks", "\"x\""),
        ("agent.permitted_image_formats", "must not be empty"),
        ("agent.ca_file", "text in quotes"),
        ("agent.tls_min_version", "\"1.2\" or \"1.3\""),
        ("log.level", "\"inof\" is not a level"),
        (
            "inspector.hooks",
            "\"extra-hardware\" is not an inspection hook",
        ),
        ("inspector.add_ports", "\"pxe\" or \"active\""),
        ("database.url", "postgres://"),
    ];
    for (key, word) in expected {
        assert!(
            found
                .iter()
                .any(|fault| fault.starts_with(&format!("{key}: ")) && fault.contains(word)),
            "no fault of {key:?} with {word:?} in {found:#?}"
        );
    }
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    assert!(!format!("{found:?}").contains("geheim"));
}

#[test]
fn a_fault_names_the_place_it_stands_in() {
    let file = file("[api]\nmax_limit = -1\n");
    let overrides = environment(&[
        ("UPBEAT_API_WORKRS", "1"),
        ("UPBEAT_AGENT_CONNECT_TIMEOUT", "no"),
    ]);
    let text = load(Some(file.path()), &overrides).unwrap_err().to_string();
    for place in [
        &format!("{}: api.max_limit: must be", file.path().display()),
        "environment variable UPBEAT_API_WORKRS: api.workrs: is not a setting; did you mean workers?",
        "environment variable UPBEAT_AGENT_CONNECT_TIMEOUT: agent.connect_timeout: must be",
        "3 faults",
    ] {
        assert!(text.contains(place), "{place} not in {text}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let missing = load(
        Some(Path::new("/nonexistent/u.toml")),
        &Overrides::default(),
    );
    assert!(
        missing
            .unwrap_err()
            .to_string()
            .contains("/nonexistent/u.toml: can't be read")
    );
    assert!(faults("[api]\n\nlisten = \n")[0].contains("line 3"));
}

#[test]
fn an_open_api_needs_authentication_or_a_clear_word() {
    let open = "[api]\nlisten = \"0.0.0.0:6385\"\n";
    assert!(faults(open)[0].contains("allow_unauthenticated"));
    assert!(load_text(&format!("{open}allow_unauthenticated = true\n")).is_ok());
    assert!(load_text("[api]\nlisten = \"[::1]:6385\"\n").is_ok());
}

#[test]
fn http_basic_needs_a_readable_file_of_bcrypt_hashes() {
    let with = |path: &str| format!("[api]\nauth = \"http_basic\"\nhtpasswd_file = \"{path}\"\n");
    assert!(faults("[api]\nauth = \"http_basic\"\n")[0].contains("is needed"));
    assert!(faults(&with("/nonexistent/x"))[0].contains("can't be read"));
    let hash = format!("$2y$05${}", "a".repeat(53));
    let good = file(&format!("# users\nadmin:{hash}\n\n"));
    assert!(load_text(&with(good.path().to_str().unwrap())).is_ok());
    let md5 = file(&format!("admin:{hash}\neve:$apr1$geheim\n"));
    let found = faults(&with(md5.path().to_str().unwrap()));
    assert!(
        found[0].contains("line 2") && !found[0].contains("geheim"),
        "{found:?}"
    );
    let empty = file("\n");
    assert!(faults(&with(empty.path().to_str().unwrap()))[0].contains("no user"));
}

#[test]
fn times_that_would_fail_healthy_agents_are_refused() {
    let found = faults("[conductor]\ndeploy_callback_timeout = 359\n");
    assert!(
        found[0].contains("0.3 to 0.6") && found[0].contains("at least 360"),
        "{found:?}"
    );
    assert!(load_text("[conductor]\ndeploy_callback_timeout = 360\n").is_ok());
    assert!(load_text("[conductor]\ndeploy_callback_timeout = 0\n").is_ok());
    assert!(
        load_text("[conductor]\ndeploy_callback_timeout = 12\n[agent]\nheartbeat_timeout = 10\n")
            .is_ok()
    );
    assert!(faults("[agent]\nconnect_timeout = 60\n")[0].contains("command_timeout"));
    // A fault of one of the two is enough to hear of.
    assert_eq!(
        faults("[conductor]\ndeploy_callback_timeout = 1\n[agent]\nheartbeat_timeout = \"x\"\n")
            .len(),
        1
    );
}

#[test]
fn the_token_key_lies_beside_an_sqlite_file_and_must_be_named_with_postgresql() {
    let beside = |url: &str| {
        load_text(&format!("[database]\nurl = {url:?}\n")).map(|config| config.token_key_path())
    };
    assert_eq!(
        beside("sqlite:///var/lib/u.db"),
        Ok(Some("/var/lib/u.db.token-key".into()))
    );
    assert!(
        beside("postgres://h/d")
            .unwrap_err()
            .to_string()
            .contains("token_key_file")
    );
    let named = "[database]\nurl = \"postgres://h/d\"\n[agent]\ntoken_key_file = \"key\"\n";
    assert_eq!(
        load_text(named).unwrap().token_key_path(),
        Some("key".into())
    );
    let nowhere = "[agent]\ntoken_key_file = \"/nonexistent/key\"\n";
    assert!(faults(nowhere)[0].contains("folder"));
}

#[test]
fn the_database_password_is_never_printed() {
    let mut config = Config::default();
    for url in [
        "postgres://u:geheim@h/d",
        "postgres://h/d?user=u&password=geheim",
    ] {
        config.database.url = url.to_owned();
        let printed = config.print_effective();
        assert!(!printed.contains("geheim"), "{printed}");
        assert!(printed.contains("******"));
        assert!(!format!("{config:?}").contains("geheim"));
    }
}

#[test]
fn the_host_name_is_never_empty() {
    assert!(!Config::default().host().is_empty());
    let mut config = Config::default();
    config.conductor.host = Some("c".to_owned());
    assert_eq!(config.host(), "c");
}

#[test]
fn every_number_is_refused_below_nothing_and_beyond_reason_and_told_its_range() {
    let mut numbers = 0;
    for (section, settings) in print::sections(&Config::default()) {
        for (key, value) in settings {
            if !value.is_integer() {
                continue;
            }
            numbers += 1;
            for wrong in ["-1", "-9223372036854775808", "9223372036854775807"] {
                let found = faults(&format!("[{section}]\n{key} = {wrong}\n"));
                assert!(
                    found[0].starts_with(&format!("{section}.{key}: must be a whole number from")),
                    "{key} = {wrong}: {found:?}"
                );
            }
            // Nothing: it switches something off, or is refused with the least there may be.
            if let Err(Faults(found)) = load_text(&format!("[{section}]\n{key} = 0\n")) {
                assert!(
                    found[0].problem.contains("from ") && !found[0].problem.contains("from 0"),
                    "{key} = 0: {found:?}"
                );
            }
        }
    }
    assert!(numbers > 15, "{numbers}");
}

#[test]
fn the_longest_times_there_may_be_do_not_overflow() {
    let config = load_text(
        "[conductor]\ndeploy_callback_timeout = 2592000\nwrite_image_limit = 2592000\ncommand_limit = 2592000\n",
    )
    .unwrap();
    let limits = config.limits();
    assert_eq!(limits.deploy_callback_timeout_ms, 2_592_000_000);
    assert_eq!(limits.write_image_limit_ms, 2_592_000_000);
    let now = crate::node::Now {
        at: crate::timestamp::Timestamp(4_102_444_800_000),
        limits: &limits,
    };
    assert_eq!(
        now.deadline(limits.command_limit_ms).map(|at| at.0),
        Some(4_105_036_800_000)
    );
    assert_eq!(now.deadline(0), None);
}

#[test]
fn agents_are_listened_to_somewhere_else_or_not_at_all() {
    let api = |more: &str| format!("[api]\nlisten = \"127.0.0.1:6385\"\n{more}");
    let config = load_text(&api("agent_listen = \"0.0.0.0:6386\"")).unwrap();
    // Nothing that wants a password is there.
    assert_eq!(
        config.api.agent_listen,
        Some("0.0.0.0:6386".parse().unwrap())
    );
    assert_eq!(
        load_text(&api("agent_listen = \"\""))
            .unwrap()
            .api
            .agent_listen,
        None
    );
    for (wrong, word) in [
        ("127.0.0.1:6385", "api.listen too"),
        ("0.0.0.0", "with a port"),
    ] {
        let told = faults(&api(&format!("agent_listen = \"{wrong}\""))).join("; ");
        assert!(
            told.contains("agent_listen") && told.contains(word),
            "{told}"
        );
    }
}
