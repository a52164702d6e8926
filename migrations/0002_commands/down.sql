DROP TABLE commands;
