/*
 * ACP's middle layer. Included by acp.h, which has the types of the basic layer.
 */
#ifndef ONESIDED_ACP_MIDDLE_H
#define ONESIDED_ACP_MIDDLE_H

#endif
