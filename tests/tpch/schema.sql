-- The TPC-H tables with all columns protected that are not keys. The plain twin
-- is the same text without "enc_".

CREATE TABLE region (
    r_regionkey integer PRIMARY KEY,
    r_name      enc_bpchar(25) NOT NULL,
    r_comment   enc_varchar(152)
);

CREATE TABLE nation (
    n_nationkey integer PRIMARY KEY,
    n_name      enc_bpchar(25) NOT NULL,
    n_regionkey integer NOT NULL REFERENCES region,
    n_comment   enc_varchar(152)
);

CREATE TABLE part (
    p_partkey     integer PRIMARY KEY,
    p_name        enc_varchar(55) NOT NULL,
    p_mfgr        enc_bpchar(25) NOT NULL,
    p_brand       enc_bpchar(10) NOT NULL,
    p_type        enc_varchar(25) NOT NULL,
    p_size        enc_int4 NOT NULL,
    p_container   enc_bpchar(10) NOT NULL,
    p_retailprice enc_numeric(15, 2) NOT NULL,
    p_comment     enc_varchar(23) NOT NULL
);

CREATE TABLE supplier (
    s_suppkey   integer PRIMARY KEY,
    s_name      enc_bpchar(25) NOT NULL,
    s_address   enc_varchar(40) NOT NULL,
    s_nationkey integer NOT NULL REFERENCES nation,
    s_phone     enc_bpchar(15) NOT NULL,
    s_acctbal   enc_numeric(15, 2) NOT NULL,
    s_comment   enc_varchar(101) NOT NULL
);

CREATE TABLE partsupp (
    ps_partkey    integer NOT NULL REFERENCES part,
    ps_suppkey    integer NOT NULL REFERENCES supplier,
    ps_availqty   enc_int4 NOT NULL,
    ps_supplycost enc_numeric(15, 2) NOT NULL,
    ps_comment    enc_varchar(199) NOT NULL,
    PRIMARY KEY (ps_partkey, ps_suppkey)
);

CREATE TABLE customer (
    c_custkey    integer PRIMARY KEY,
    c_name       enc_varchar(25) NOT NULL,
    c_address    enc_varchar(40) NOT NULL,
    c_nationkey  integer NOT NULL REFERENCES nation,
    c_phone      enc_bpchar(15) NOT NULL,
    c_acctbal    enc_numeric(15, 2) NOT NULL,
    c_mktsegment enc_bpchar(10) NOT NULL,
    c_comment    enc_varchar(117) NOT NULL
);

CREATE TABLE orders (
    o_orderkey      integer PRIMARY KEY,
    o_custkey       integer NOT NULL REFERENCES customer,
    o_orderstatus   enc_bpchar(1) NOT NULL,
    o_totalprice    enc_numeric(15, 2) NOT NULL,
    o_orderdate     enc_date NOT NULL,
    o_orderpriority enc_bpchar(15) NOT NULL,
    o_clerk         enc_bpchar(15) NOT NULL,
    o_shippriority  enc_int4 NOT NULL,
    o_comment       enc_varchar(79) NOT NULL
);

CREATE TABLE lineitem (
    l_orderkey      integer NOT NULL REFERENCES orders,
    l_partkey       integer NOT NULL REFERENCES part,
    l_suppkey       integer NOT NULL REFERENCES supplier,
    l_linenumber    integer NOT NULL,
    l_quantity      enc_numeric(15, 2) NOT NULL,
    l_extendedprice enc_numeric(15, 2) NOT NULL,
    l_discount      enc_numeric(15, 2) NOT NULL,
    l_tax           enc_numeric(15, 2) NOT NULL,
    l_returnflag    enc_bpchar(1) NOT NULL,
    l_linestatus    enc_bpchar(1) NOT NULL,
    l_shipdate      enc_date NOT NULL,
    l_commitdate    enc_date NOT NULL,
    l_receiptdate   enc_date NOT NULL,
    l_shipinstruct  enc_bpchar(25) NOT NULL,
    l_shipmode      enc_bpchar(10) NOT NULL,
    l_comment       enc_varchar(44) NOT NULL,
    PRIMARY KEY (l_orderkey, l_linenumber)
);
