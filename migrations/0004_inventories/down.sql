DROP TABLE inventories;
