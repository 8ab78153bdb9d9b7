-- What somebody has read and starred is not kept any more.
DROP TABLE feedhistory.marks;
