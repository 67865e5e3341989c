//! Two real, throw-away PostgreSQL servers: what the fence and the streams promise, with writers that never stop.

use super::*;
use crate::world::data::Data;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio_postgres::{Client, NoTls};

const SQL: &str = "
create role orders login;
create table customers (id int primary key, name text not null);
create table orders (id bigserial primary key, client text not null, seq bigint not null, note text, at timestamptz default now());
grant select, insert, update, delete on orders, customers to orders;
grant usage on all sequences in schema public to orders;
insert into customers select i, 'customer ' || i from generate_series(1, 500) i;
insert into orders (client, seq) select 'old', i from generate_series(1, 20000) i;
";

/// A server in a folder of its own; stopped and removed when dropped, also after a panic.
struct Server {
    dir: PathBuf,
    port: u16,
}

fn as_postgres(program: &str) -> Command {
    let root = std::fs::metadata("/proc/self")
        .map(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0)
        .unwrap_or(false);
    let mut c = if root {
        let mut c = Command::new("runuser");
        c.args(["-u", "postgres", "--", program]);
        c
    } else {
        Command::new(program)
    };
    c.stdin(Stdio::null()).current_dir("/");
    c
}

fn must(mut c: Command) {
    let out = c
        .output()
        .unwrap_or_else(|e| panic!("{c:?}: {e}: PostgreSQL is needed on PATH"));
    assert!(
        out.status.success(),
        "{c:?}: {}{}",
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    );
}

impl Server {
    fn start(name: &str) -> Server {
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let dir =
            std::env::temp_dir().join(format!("crossfade-pg-{name}-{}-{port}", std::process::id()));
        let server = Server {
            dir: dir.clone(),
            port,
        };
        let _ = std::fs::remove_dir_all(&dir);
        // Made by the user that runs the server: the folder's owner is who may use it.
        let mut c = as_postgres("mkdir");
        c.arg(&dir);
        must(c);
        let mut c = as_postgres("initdb");
        c.args(["-A", "trust", "-U", "postgres", "--no-sync", "-D"])
            .arg(dir.join("data"));
        must(c);
        let options = format!(
            "-p {port} -c wal_level=logical -c listen_addresses=127.0.0.1 -c fsync=off -c max_wal_senders=20 -k {}",
            dir.display()
        );
        let mut c = as_postgres("pg_ctl");
        c.args(["-w", "-o", &options, "-l"])
            .arg(dir.join("log"))
            .arg("-D")
            .arg(dir.join("data"))
            .arg("start");
        c.stdout(Stdio::null()).stderr(Stdio::null());
        let status = c.status().expect("pg_ctl runs");
        assert!(status.success(), "the server did not start: {}", log(&dir));
        server
    }
    fn database(&self, name: &str) -> Database {
        Database {
            host: "127.0.0.1".into(),
            port: self.port,
            database: name.into(),
            admin: "postgres".into(),
            admin_password_env: None,
            role: "orders".into(),
            peer_address: None,
        }
    }
    async fn connect(&self, user: &str, database: &str) -> Client {
        let text = format!(
            "host=127.0.0.1 port={} user={user} dbname={database}",
            self.port
        );
        let (client, connection) = tokio_postgres::connect(&text, NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }
}

fn log(dir: &Path) -> String {
    std::fs::read_to_string(dir.join("log")).unwrap_or_default()
}

impl Drop for Server {
    fn drop(&mut self) {
        let mut c = as_postgres("pg_ctl");
        c.args(["-m", "immediate", "-D"])
            .arg(self.dir.join("data"))
            .arg("stop");
        let _ = c.stdout(Stdio::null()).stderr(Stdio::null()).status();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

struct Bench {
    blue: Server,
    green: Server,
    data: LiveData,
}

async fn bench() -> Bench {
    let (blue, green) = (Server::start("blue"), Server::start("green"));
    for s in [&blue, &green] {
        s.connect("postgres", "postgres")
            .await
            .batch_execute("create database shop")
            .await
            .unwrap();
    }
    blue.connect("postgres", "shop")
        .await
        .batch_execute(SQL)
        .await
        .unwrap();
    green
        .connect("postgres", "shop")
        .await
        .batch_execute("create role orders login")
        .await
        .unwrap();
    let set = DataSet {
        name: "orders".into(),
        mode: DataMode::Postgres,
        blue: Some(blue.database("shop")),
        green: Some(green.database("shop")),
        tables: vec![],
        write_probe: None,
    };
    Bench {
        data: LiveData::new(&[set]),
        blue,
        green,
    }
}

/// Inserts all the time as the application does and counts what was acknowledged; a refusal is counted and it goes on.
struct Writer {
    acknowledged: Arc<AtomicU64>,
    refused: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<()>,
}

impl Writer {
    async fn start(server: &Server, client: &'static str) -> Writer {
        let (acknowledged, refused, stop) = (
            Arc::<AtomicU64>::default(),
            Arc::<AtomicU64>::default(),
            Arc::<AtomicBool>::default(),
        );
        let (a, r, s) = (acknowledged.clone(), refused.clone(), stop.clone());
        let text = format!(
            "host=127.0.0.1 port={} user=orders dbname=shop",
            server.port
        );
        let task = tokio::spawn(async move {
            let mut held: Option<Client> = None;
            let mut seq = 0_i64;
            while !s.load(Ordering::SeqCst) {
                let db = match held.take() {
                    Some(c) if !c.is_closed() => c,
                    _ => match tokio_postgres::connect(&text, NoTls).await {
                        Ok((c, connection)) => {
                            tokio::spawn(connection);
                            c
                        }
                        Err(_) => continue,
                    },
                };
                match db
                    .execute(
                        "insert into orders (client, seq) values ($1, $2)",
                        &[&client, &seq],
                    )
                    .await
                {
                    Ok(_) => {
                        a.fetch_add(1, Ordering::SeqCst);
                        seq += 1;
                    }
                    Err(_) => {
                        r.fetch_add(1, Ordering::SeqCst);
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                }
                held = Some(db);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        Writer {
            acknowledged,
            refused,
            stop,
            task,
        }
    }
    fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::SeqCst)
    }
    async fn finish(self) -> u64 {
        self.stop.store(true, Ordering::SeqCst);
        self.task.await.unwrap();
        self.acknowledged.load(Ordering::SeqCst)
    }
}

async fn count(server: &Server, sql: &str) -> i64 {
    server
        .connect("postgres", "shop")
        .await
        .query_one(sql, &[])
        .await
        .unwrap()
        .get(0)
}

async fn until<F: AsyncFnMut() -> bool>(what: &str, mut done: F) {
    let start = Instant::now();
    while !done().await {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "waited a minute for {what}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Everything about blue that a fence or a stream could have left behind.
async fn traces(server: &Server) -> String {
    let db = server.connect("postgres", "shop").await;
    let mut out = String::new();
    for sql in [
        "select coalesce(string_agg(slot_name::text, ','), '') from pg_replication_slots",
        "select coalesce(string_agg(pubname::text, ','), '') from pg_publication",
        "select coalesce(string_agg(subname::text, ','), '') from pg_subscription",
        "select coalesce(string_agg(tgname::text, ','), '') from pg_trigger where not tgisinternal",
        "select coalesce(string_agg(nspname::text, ','), '') from pg_namespace where nspname = 'crossfade'",
    ] {
        out.push_str(db.query_one(sql, &[]).await.unwrap().get(0));
    }
    out
}

async fn grants(server: &Server) -> String {
    server
        .connect("postgres", "shop")
        .await
        .query_one(
            "select string_agg(relname || ' ' || coalesce(relacl::text, ''), ';' order by relname) from pg_class where relnamespace = 'public'::regnamespace",
            &[],
        )
        .await
        .unwrap()
        .get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_follow_to_green_and_back_and_none_is_lost_while_writers_never_stop() {
    let b = bench().await;
    let grants_before = grants(&b.blue).await;
    let writer = Writer::start(&b.blue, "shopper").await;

    // Copy while people write; green is closed from the first moment on.
    b.data
        .start_stream("orders", Side::Blue, true)
        .await
        .unwrap();
    b.data
        .start_stream("orders", Side::Blue, true)
        .await
        .unwrap();
    assert!(
        !b.data.probe_write("orders", Side::Green).await.unwrap(),
        "green must be closed while it is a copy"
    );
    // A stream of an earlier run that is still up must not carry the emptying of a stale copy to the side it came from.
    let truncating = count(
        &b.blue,
        "select count(*) from pg_publication where pubtruncate",
    )
    .await;
    assert_eq!(truncating, 0, "no publication passes TRUNCATE on");
    assert!(b.data.probe_write("orders", Side::Blue).await.unwrap());
    until("the first copy", async || {
        b.data.stream("orders", Side::Blue).await.unwrap().copied
    })
    .await;
    let at_copy = writer.acknowledged();
    until("more writes", async || writer.acknowledged() > at_copy + 50).await;

    // Fence: at once, also for the session that is open and in the middle of things.
    let open_session = b.blue.connect("orders", "shop").await;
    open_session
        .execute(
            "insert into orders (client, seq) values ('open session', 0)",
            &[],
        )
        .await
        .unwrap();
    let sequence_before = {
        let start = Instant::now();
        b.data
            .set_writable("orders", Side::Blue, false)
            .await
            .unwrap();
        b.data
            .set_writable("orders", Side::Blue, false)
            .await
            .unwrap();
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "closing took {:?}",
            start.elapsed()
        );
        count(&b.blue, "select last_value from orders_id_seq").await
    };
    let frozen = count(&b.blue, "select count(*) from orders").await;
    let refusal = open_session
        .execute(
            "insert into orders (client, seq) values ('open session', 1)",
            &[],
        )
        .await
        .unwrap_err();
    assert_eq!(
        refusal.code().map(|c| c.code()),
        Some("25006"),
        "{refusal:?}"
    );
    let refusal = open_session
        .execute("update customers set name = 'x' where id = 1", &[])
        .await
        .unwrap_err();
    assert_eq!(refusal.code().map(|c| c.code()), Some("25006"));
    open_session
        .query("select count(*) from orders", &[])
        .await
        .expect("reads go on in the same session");
    assert!(!b.data.probe_write("orders", Side::Blue).await.unwrap());
    assert!(!b.data.state("orders", Side::Blue).await.unwrap().writable);
    until("refusals", async || {
        writer.refused.load(Ordering::SeqCst) > 20
    })
    .await;
    assert_eq!(
        count(&b.blue, "select count(*) from orders").await,
        frozen,
        "a row came through the fence"
    );
    assert_eq!(
        count(&b.blue, "select last_value from orders_id_seq").await,
        sequence_before,
        "refused writes burnt numbers"
    );

    // Drained and equal, then the direction turns round.
    until("the drain", async || {
        b.data.stream("orders", Side::Blue).await.unwrap().lag_bytes == 0
    })
    .await;
    let on_blue = b.data.tables("orders", Side::Blue).await.unwrap();
    assert_eq!(on_blue, b.data.tables("orders", Side::Green).await.unwrap());
    assert_eq!(
        on_blue
            .iter()
            .find(|t| t.name == "public.orders")
            .unwrap()
            .rows,
        u64::try_from(frozen).unwrap()
    );
    b.data.copy_sequences("orders", Side::Blue).await.unwrap();
    b.data.stop_stream("orders", Side::Blue).await.unwrap();
    b.data.stop_stream("orders", Side::Blue).await.unwrap();
    b.data
        .start_stream("orders", Side::Green, false)
        .await
        .unwrap();
    let reverse = b.data.stream("orders", Side::Green).await.unwrap();
    assert!(reverse.exists && reverse.copied, "{reverse:?}");
    b.data
        .set_writable("orders", Side::Green, true)
        .await
        .unwrap();
    assert!(
        b.data.probe_write("orders", Side::Green).await.unwrap(),
        "green must accept the application's role like blue did"
    );
    assert!(!b.data.probe_write("orders", Side::Blue).await.unwrap());
    let acknowledged_on_blue = writer.finish().await;

    // Life on green, then all the way back.
    let on_green = Writer::start(&b.green, "green shopper").await;
    until("writes on green", async || on_green.acknowledged() > 100).await;
    let app = b.green.connect("orders", "shop").await;
    assert_eq!(
        app.execute(
            "update orders set note = 'changed on green' where client = 'open session'",
            &[]
        )
        .await
        .unwrap(),
        1
    );
    assert_eq!(
        app.execute("delete from customers where id = 500", &[])
            .await
            .unwrap(),
        1
    );
    b.data
        .set_writable("orders", Side::Green, false)
        .await
        .unwrap();
    let acknowledged_on_green = on_green.finish().await;
    until("the drain back", async || {
        b.data
            .stream("orders", Side::Green)
            .await
            .unwrap()
            .lag_bytes
            == 0
    })
    .await;
    assert_eq!(
        b.data.tables("orders", Side::Blue).await.unwrap(),
        b.data.tables("orders", Side::Green).await.unwrap()
    );
    b.data.copy_sequences("orders", Side::Green).await.unwrap();
    b.data.stop_stream("orders", Side::Green).await.unwrap();
    b.data
        .set_writable("orders", Side::Blue, true)
        .await
        .unwrap();

    for (client, acknowledged) in [
        ("shopper", acknowledged_on_blue),
        ("green shopper", acknowledged_on_green),
    ] {
        let kept = count(
            &b.blue,
            &format!("select count(*) from orders where client = '{client}'"),
        )
        .await;
        assert_eq!(
            kept,
            i64::try_from(acknowledged).unwrap(),
            "acknowledged rows of {client} that blue does not have"
        );
    }
    assert_eq!(
        count(
            &b.blue,
            "select count(*) from orders where note = 'changed on green'"
        )
        .await,
        1
    );
    assert_eq!(count(&b.blue, "select count(*) from customers").await, 499);
    let app = b.blue.connect("orders", "shop").await;
    app.execute("insert into orders (client, seq) values ('after', 1)", &[])
        .await
        .expect("a fresh number, no clash");
    assert_eq!(traces(&b.blue).await, "", "undo left something on blue");
    assert_eq!(grants(&b.blue).await, grants_before);
    for s in [&b.blue, &b.green] {
        assert_eq!(
            count(s, "select count(*) from pg_replication_slots").await,
            0,
            "a slot was left"
        );
        assert_eq!(count(s, "select count(*) from pg_subscription").await, 0);
    }

    // Again: the copy on green is ours and may be emptied.
    b.data
        .start_stream("orders", Side::Blue, true)
        .await
        .unwrap();
    until("the second copy", async || {
        b.data.stream("orders", Side::Blue).await.unwrap().copied
    })
    .await;
    until("the second drain", async || {
        b.data.stream("orders", Side::Blue).await.unwrap().lag_bytes == 0
    })
    .await;
    assert_eq!(
        b.data.tables("orders", Side::Blue).await.unwrap(),
        b.data.tables("orders", Side::Green).await.unwrap()
    );
    b.data.stop_stream("orders", Side::Blue).await.unwrap();
    assert_eq!(traces(&b.blue).await, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_on_green_that_crossfade_did_not_bring_are_never_deleted() {
    let b = bench().await;
    b.green
        .connect("postgres", "shop")
        .await
        .batch_execute("create table customers (id int primary key, name text not null); insert into customers values (1, 'theirs')")
        .await
        .unwrap();
    let e = b
        .data
        .start_stream("orders", Side::Blue, true)
        .await
        .unwrap_err();
    assert_eq!(e.class, Class::Refused);
    assert!(e.message.contains("public.customers"), "{}", e.message);
    assert_eq!(count(&b.green, "select count(*) from customers").await, 1);
    assert_eq!(traces(&b.blue).await, "", "nothing was begun on blue");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_whose_updates_would_break_once_published_stops_before_anything_is_made() {
    let b = bench().await;
    b.blue
        .connect("postgres", "shop")
        .await
        .batch_execute("create table audit (line text)")
        .await
        .unwrap();
    let e = b
        .data
        .start_stream("orders", Side::Blue, true)
        .await
        .unwrap_err();
    assert_eq!(e.class, Class::Refused);
    assert!(e.message.contains("audit"), "{}", e.message);
    assert_eq!(traces(&b.blue).await, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_transaction_that_wrote_is_ended_by_the_fence_and_an_idle_reader_is_not() {
    let b = bench().await;
    let reader = b.blue.connect("orders", "shop").await;
    reader.query("select 1", &[]).await.unwrap();
    let holder = b.blue.connect("orders", "shop").await;
    holder
        .batch_execute("begin; insert into orders (client, seq) values ('uncommitted', 1)")
        .await
        .unwrap();
    let owner = b.blue.connect("postgres", "shop").await;
    b.data
        .set_writable("orders", Side::Blue, false)
        .await
        .unwrap();
    holder
        .batch_execute("commit")
        .await
        .expect_err("the open write must not be committed behind the fence");
    assert_eq!(
        count(
            &b.blue,
            "select count(*) from orders where client = 'uncommitted'"
        )
        .await,
        0
    );
    reader
        .query("select count(*) from orders", &[])
        .await
        .expect("readers stay connected");
    let refusal = owner.batch_execute("truncate orders").await.unwrap_err();
    assert_eq!(
        refusal.code().map(|c| c.code()),
        Some("25006"),
        "owners and superusers are fenced as well"
    );
    b.data
        .set_writable("orders", Side::Blue, true)
        .await
        .unwrap();
    b.data
        .set_writable("orders", Side::Blue, true)
        .await
        .unwrap();
    reader
        .execute(
            "insert into orders (client, seq) values ('open again', 1)",
            &[],
        )
        .await
        .unwrap();
    assert_eq!(traces(&b.blue).await, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_was_cut_off_leaves_no_slots_when_it_is_undone() {
    let b = bench().await;
    b.blue
        .connect("postgres", "shop")
        .await
        .batch_execute(
            "insert into orders (client, seq) select 'bulk', i from generate_series(1, 200000) i",
        )
        .await
        .unwrap();
    b.data
        .start_stream("orders", Side::Blue, true)
        .await
        .unwrap();
    b.data.stop_stream("orders", Side::Blue).await.unwrap();
    assert!(!b.data.stream("orders", Side::Blue).await.unwrap().exists);
    assert_eq!(traces(&b.blue).await, "");
    // A slot that a lost CREATE SUBSCRIPTION left behind does not stand in the way.
    b.blue
        .connect("postgres", "shop")
        .await
        .batch_execute(
            "select pg_create_logical_replication_slot('crossfade_orders_blue', 'pgoutput')",
        )
        .await
        .unwrap();
    b.data
        .start_stream("orders", Side::Blue, true)
        .await
        .unwrap();
    until("the copy", async || {
        b.data.stream("orders", Side::Blue).await.unwrap().copied
    })
    .await;
    b.data.stop_stream("orders", Side::Blue).await.unwrap();
    assert_eq!(traces(&b.blue).await, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_who_cannot_try_as_the_application_proves_nothing() {
    let b = bench().await;
    b.blue
        .connect("postgres", "shop")
        .await
        .batch_execute("create role dba login")
        .await
        .unwrap();
    let mut set = b.data.sets["orders"].clone();
    if let Some(blue) = set.blue.as_mut() {
        blue.admin = "dba".into();
    }
    let e = LiveData::new(&[set])
        .probe_write("orders", Side::Blue)
        .await
        .unwrap_err();
    assert_eq!(e.class, Class::Unauthorized, "never a false `closed`: {e}");
    assert!(e.remedy.contains("GRANT orders TO dba"), "{}", e.remedy);
}

#[tokio::test]
async fn a_database_that_nobody_serves_is_unreachable_and_says_where() {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let place = Database {
        host: "127.0.0.1".into(),
        port,
        database: "shop".into(),
        admin: "postgres".into(),
        admin_password_env: None,
        role: "orders".into(),
        peer_address: None,
    };
    let set = DataSet {
        name: "orders".into(),
        mode: DataMode::Postgres,
        blue: Some(place.clone()),
        green: Some(place),
        tables: vec![],
        write_probe: None,
    };
    let e = LiveData::new(&[set])
        .state("orders", Side::Blue)
        .await
        .unwrap_err();
    assert_eq!(e.class, Class::Unreachable);
    assert!(
        e.message.contains(&format!("127.0.0.1:{port}")),
        "{}",
        e.message
    );
}
