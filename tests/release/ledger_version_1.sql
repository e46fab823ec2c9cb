-- A ledger of version 1, as hedgerow wrote it: digests of certificates stand in notes. The data is made up.
-- beside it:|2ffe10ceae46967dbe9ebe15e4dcfa262ead0cf820a3fd12bca280951da59ad4|6 bdff7eb9edc385aa14f4a9de3991c0b9f5745739ea544bb8303324f69f092b4f 886ae9711dbd43d09321caf4324096f6ec5ad9cac97ecbff9bace62639035258
BEGIN TRANSACTION;
CREATE TABLE entries (
        id INTEGER PRIMARY KEY, time TEXT NOT NULL, event TEXT NOT NULL, dataset TEXT, fingerprint TEXT,
        relation TEXT, epsilon REAL, copies INTEGER, plan TEXT, release TEXT, note TEXT NOT NULL,
        previous TEXT NOT NULL, hash TEXT NOT NULL
    ) STRICT;
INSERT INTO "entries" VALUES(1,'2026-11-15T23:51:39.578101Z','budget','payroll',NULL,'withheld',10.0,NULL,NULL,NULL,'board','0000000000000000000000000000000000000000000000000000000000000000','a5cb9f63b239660eea529fbf0beeb9166e23ef412438e45252ec356446dc8edf');
INSERT INTO "entries" VALUES(2,'2026-11-15T23:51:39.602062Z','reserved','payroll','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff','withheld',2.5,1,'dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd','1111111111111111','folder release','a5cb9f63b239660eea529fbf0beeb9166e23ef412438e45252ec356446dc8edf','6cc8beb3558598d79645d825ad4ee9917022b5e463e2726dc4913fb6020f254b');
INSERT INTO "entries" VALUES(3,'2026-11-15T23:51:39.625895Z','released','payroll','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff','withheld',2.5,1,'dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd','1111111111111111','certificate cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc','6cc8beb3558598d79645d825ad4ee9917022b5e463e2726dc4913fb6020f254b','6f3aad7e1f63146056db52371d569eca1b8717ef5e2d967e55a61a8e36ae6acc');
INSERT INTO "entries" VALUES(4,'2026-11-15T23:51:39.645797Z','reserved','payroll','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff','withheld',2.5,1,'dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd','2222222222222222','folder release','6f3aad7e1f63146056db52371d569eca1b8717ef5e2d967e55a61a8e36ae6acc','3da6c0acbffaa59da6d2efe772e74bcdea219f79d6bcac652c18e7a1faac6e98');
INSERT INTO "entries" VALUES(5,'2026-11-15T23:51:39.655116Z','released','payroll','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff','withheld',2.5,1,'dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd','2222222222222222','certificate cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc; settled by hand','3da6c0acbffaa59da6d2efe772e74bcdea219f79d6bcac652c18e7a1faac6e98','2f8990e1da0ae87b66bebf8eb8cfdb970c0af3e7e551a0c805e903e672ee3c03');
INSERT INTO "entries" VALUES(6,'2026-11-15T23:51:39.670489Z','reserved','payroll','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff','withheld',1.0,1,'dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd','3333333333333333','folder gone','2f8990e1da0ae87b66bebf8eb8cfdb970c0af3e7e551a0c805e903e672ee3c03','bdff7eb9edc385aa14f4a9de3991c0b9f5745739ea544bb8303324f69f092b4f');
CREATE TABLE head (
        one INTEGER PRIMARY KEY CHECK (one = 1), count INTEGER NOT NULL, hash TEXT NOT NULL,
        seal TEXT NOT NULL
    ) STRICT;
INSERT INTO "head" VALUES(1,6,'bdff7eb9edc385aa14f4a9de3991c0b9f5745739ea544bb8303324f69f092b4f','886ae9711dbd43d09321caf4324096f6ec5ad9cac97ecbff9bace62639035258');
CREATE TRIGGER entries_update BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER entries_delete BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'append-only'); END;
COMMIT;
PRAGMA user_version = 1;
